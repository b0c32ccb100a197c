# A release replaces the words between two @.
class Gridfusion < Formula
  desc "SQL over NetCDF, HDF5, Zarr, TileDB and Tetration arrays"
  homepage "@REPOSITORY@"
  version "@VERSION@"
  license any_of: ["MIT", "Apache-2.0"]

  on_macos do
    on_arm do
      url "@REPOSITORY@/releases/download/v@VERSION@/gridfusion-@VERSION@-aarch64-apple-darwin.tar.gz"
      sha256 "@SHA256:aarch64-apple-darwin@"
    end
    on_intel do
      url "@REPOSITORY@/releases/download/v@VERSION@/gridfusion-@VERSION@-x86_64-apple-darwin.tar.gz"
      sha256 "@SHA256:x86_64-apple-darwin@"
    end
  end

  on_linux do
    on_arm do
      url "@REPOSITORY@/releases/download/v@VERSION@/gridfusion-@VERSION@-aarch64-unknown-linux-gnu.tar.gz"
      sha256 "@SHA256:aarch64-unknown-linux-gnu@"
    end
    on_intel do
      url "@REPOSITORY@/releases/download/v@VERSION@/gridfusion-@VERSION@-x86_64-unknown-linux-gnu.tar.gz"
      sha256 "@SHA256:x86_64-unknown-linux-gnu@"
    end
  end

  def install
    bin.install "gridfusion"
    man1.install Dir["man/*.1"]
    bash_completion.install "completions/gridfusion.bash" => "gridfusion"
    fish_completion.install "completions/gridfusion.fish"
    zsh_completion.install "completions/_gridfusion"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/gridfusion --version")
    assert_match "42", shell_output("#{bin}/gridfusion -q -c 'SELECT 6 * 7'")
  end
end
