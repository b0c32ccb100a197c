# Installs the program gridfusion for the current user: downloads the archive for Windows, checks its SHA-256, and puts the program into
# ~\.local\bin. Needs no administrator. A release replaces the words between two @.
#
#     GRIDFUSION_INSTALL_DIR   the folder for the program, instead of ~\.local\bin
#     GRIDFUSION_VERSION       another version
#     GRIDFUSION_DOWNLOAD      another URL of the folder with the archives and SHA256SUMS

function Install-Gridfusion {
    $ErrorActionPreference = 'Stop'
    $ProgressPreference = 'SilentlyContinue' # the bar makes downloads slow
    [Net.ServicePointManager]::SecurityProtocol = [Net.SecurityProtocolType]::Tls12

    function Fail($message) { throw "gridfusion was not installed: $message" }

    function Download($url, $file) {
        try { Invoke-WebRequest -UseBasicParsing -Uri $url -OutFile $file }
        catch { Fail "$url cannot be downloaded. Check the network, or set GRIDFUSION_DOWNLOAD to a copy. $_" }
    }

    $version = if ($env:GRIDFUSION_VERSION) { $env:GRIDFUSION_VERSION.TrimStart('v') } else { '@VERSION@' }
    $from = if ($env:GRIDFUSION_DOWNLOAD) { $env:GRIDFUSION_DOWNLOAD } else { "@REPOSITORY@/releases/download/v$version" }
    if ("$version$from" -match '@.*@') { Fail 'this copy of the script belongs to no release. Take the one of a release' }
    $into = if ($env:GRIDFUSION_INSTALL_DIR) { $env:GRIDFUSION_INSTALL_DIR } else { Join-Path $HOME '.local\bin' }

    if ($env:OS -ne 'Windows_NT') { Fail 'this script is for Windows. On other systems, run install.sh' }
    # Windows on ARM runs programs for x86-64.
    if (-not [Environment]::Is64BitOperatingSystem) { Fail 'there is no archive for Windows of 32 bits' }
    $name = "gridfusion-$version-x86_64-pc-windows-msvc"

    $folder = Join-Path ([IO.Path]::GetTempPath()) ([Guid]::NewGuid())
    New-Item -ItemType Directory -Path $folder | Out-Null
    try {
        Write-Output "Downloading $name"
        $sums = Join-Path $folder 'SHA256SUMS'
        $archive = Join-Path $folder 'archive.zip'
        Download "$from/SHA256SUMS" $sums
        $line = Get-Content $sums | Where-Object { $_ -match "^[0-9a-f]{64}  $([Regex]::Escape($name))\.zip$" }
        if (-not $line) { Fail "$from/SHA256SUMS does not name $name.zip" }
        $expected = $line.Substring(0, 64)
        Download "$from/$name.zip" $archive
        $found = (Get-FileHash -Algorithm SHA256 $archive).Hash.ToLowerInvariant()
        if ($found -ne $expected) {
            Fail "the archive is damaged or was changed. SHA256SUMS lists $expected, and the archive has $found"
        }

        Expand-Archive -Path $archive -DestinationPath $folder
        $program = Join-Path $folder "$name\gridfusion.exe"
        $installed = & $program -V
        if ($LASTEXITCODE -ne 0) { Fail 'the program does not run on this system' }
        New-Item -ItemType Directory -Force -Path $into | Out-Null
        try { Copy-Item -Force $program (Join-Path $into 'gridfusion.exe') }
        catch { Fail "$into\gridfusion.exe cannot be written. End the program if it runs. $_" }
        Write-Output "Installed ${installed}: $into\gridfusion.exe"
        if (($env:PATH -split ';') -notcontains $into) {
            Write-Output "Add the folder to your PATH: `$env:PATH = `"$into;`$env:PATH`""
        }
    }
    finally { Remove-Item -Recurse -Force $folder }
}

Install-Gridfusion
