//! What compiles and what does not, with the message.

#[test]
fn catalogs_compile_and_faults_do_not() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/pass/*.rs");
    cases.compile_fail("tests/fail/*.rs");
}
