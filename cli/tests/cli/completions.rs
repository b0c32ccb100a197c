//! `gridfusion completions`: scripts for shells.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::support::{gridfusion, run};

const SHELLS: [&str; 5] = ["bash", "zsh", "fish", "powershell", "elvish"];

#[test]
fn each_shell_gets_a_script_with_all_options() {
    for shell in SHELLS {
        let outcome = run(&["completions", shell]);
        assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{shell}");
        for word in
            ["memory-limit", "no-progress", "info", "metadata", "completions", "plot", "nd-json"]
        {
            // The scripts for PowerShell and Elvish complete options, but not their values.
            let is_value = word == "nd-json" && ["powershell", "elvish"].contains(&shell);
            assert!(is_value || outcome.stdout.contains(word), "{shell}: {word}");
        }
    }
    for args in [&["completions"][..], &["completions", "tcsh"]] {
        let outcome = run(args);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(2), ""), "{outcome:?}");
    }
}

#[test]
fn a_closed_stdout_is_no_error() {
    let mut child = gridfusion(&["completions", "zsh"]).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}

/// Returns bash's completions of the last word of a line.
fn completed(words: &[&str]) -> Vec<String> {
    let script = run(&["completions", "bash"]).stdout;
    let line = words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
    let [.., previous, last] = words else { panic!("{words:?}") };
    let end = words.len() - 1;
    let call = format!(
        "COMP_WORDS=({line}); COMP_CWORD={end}; _gridfusion gridfusion '{last}' '{previous}'; \
         printf '%s\\n' \"${{COMPREPLY[@]}}\""
    );
    let mut bash =
        Command::new("bash").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    bash.stdin.take().unwrap().write_all(format!("{script}\n{call}\n").as_bytes()).unwrap();
    let output = bash.wait_with_output().unwrap();
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
#[ignore = "needs bash"]
fn bash_completes() {
    assert_eq!(completed(&["gridfusion", "--ti"]), ["--timing"]);
    assert_eq!(completed(&["gridfusion", "inf"]), ["info"]);
    assert_eq!(completed(&["gridfusion", "info", "--js"]), ["--json"]);
    assert_eq!(completed(&["gridfusion", "--format", "nd"]), ["nd-json"]);
}
