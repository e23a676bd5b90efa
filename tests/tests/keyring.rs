//! Tests logins in the keyring of the system, with GNOME's keyring on a message bus of the test.

use std::collections::HashMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use ptc_tests::deployment::ptc_compile;
use ptc_tests::mcp::Client;
use ptc_tests::process::{Background, Finished, run, wait_for};
use serde_json::json;
use tiny_http::{Header, Request, Response, Server};

/// What all tokens of the test contain.
const MARK: &str = "not-a-real";
const FIRST_TOKEN: &str = "not-a-real-refresh-token-0";
/// The lifetime of access tokens in seconds. It is longer than a renewal on a loaded machine.
const LIFETIME: u64 = 8;

/// A message bus with a keyring, and a folder that is the home of a person. Both programs end when it is dropped.
struct Desktop {
    home: tempfile::TempDir,
    keyring: Child,
    _bus: Background,
}

impl Desktop {
    /// Starts the programs. The keyring is unlocked.
    fn start() -> Desktop {
        let home = tempfile::tempdir().expect("a folder");
        // The bus starts no other program, such as one that asks a person.
        let address = format!("unix:path={}", home.path().join("bus").display());
        let bus_config = home.path().join("bus.conf");
        let policy =
            "<policy context=\"default\"><allow send_destination=\"*\"/><allow eavesdrop=\"true\"/><allow own=\"*\"/></policy>";
        let text = format!("<busconfig><type>session</type><listen>{address}</listen>{policy}</busconfig>");
        fs::write(&bus_config, text).expect("a file");
        let mut bus = Command::new("dbus-daemon");
        let bus = Background::start(bus.arg("--nofork").arg("--config-file").arg(&bus_config));
        wait_for(|| home.path().join("bus").exists(), "the message bus");
        let mut keyring = Command::new("gnome-keyring-daemon");
        keyring
            .args(["--foreground", "--unlock", "--components=secrets", "--control-directory"])
            .arg(home.path().join("control"));
        surround(&mut keyring, home.path());
        let keyring = keyring.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let mut keyring =
            keyring.unwrap_or_else(|error| panic!("cannot start gnome-keyring-daemon ({error}): run .ci/peers first"));
        keyring.stdin.take().expect("it is piped").write_all(b"not-a-real-password").expect("it reads the password");
        let desktop = Desktop { home, keyring, _bus: bus };
        wait_for(
            || desktop.ask(&["/org/freedesktop/secrets/aliases/default", "org.freedesktop.DBus.Peer.Ping"]).code == Some(0),
            "the keyring",
        );
        desktop
    }

    /// Calls a method of the keyring.
    fn ask(&self, call: &[&str]) -> Finished {
        ask(self.home.path(), call)
    }

    /// Returns the number of entries of `ptc-compile`.
    fn entries(&self) -> usize {
        let search =
            ["/org/freedesktop/secrets", "org.freedesktop.Secret.Service.SearchItems", "dict:string:string:service,ptc-compile"];
        self.ask(&search).success().matches("object path").count()
    }

    /// Returns `ptc-compile` in this session.
    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(ptc_compile());
        surround(&mut command, self.home.path()).args(args).current_dir(self.home.path());
        command
    }

    fn server(&self) -> Client {
        let mut server = Client::of(&mut self.command(&[
            "run",
            "upstreams.json",
            "--token-store",
            "keyring",
            "--upstream-call-timeout-ms",
            "30000",
        ]));
        server.initialize();
        server
    }

    /// Returns the files of the person.
    fn files(&self) -> Vec<PathBuf> {
        let (mut folders, mut files) = (vec![self.home.path().to_owned()], Vec::new());
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry")) {
                let kind = entry.file_type().expect("a type");
                if kind.is_dir() {
                    folders.push(entry.path());
                } else if kind.is_file() {
                    files.push(entry.path());
                }
            }
        }
        files
    }
}

impl Drop for Desktop {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.keyring.kill();
        let _ = self.keyring.wait();
    }
}

/// Calls a method of the keyring of the person with this home.
fn ask(home: &Path, call: &[&str]) -> Finished {
    let mut send = Command::new("dbus-send");
    send.args(["--session", "--print-reply", "--dest=org.freedesktop.secrets"]).args(call);
    run(surround(&mut send, home))
}

/// Locks the keyring. No program of this bus asks for the password.
fn lock(home: &Path) {
    let lock = [
        "/org/freedesktop/secrets",
        "org.freedesktop.Secret.Service.Lock",
        "array:objpath:/org/freedesktop/secrets/collection/login",
    ];
    ask(home, &lock).success();
}

/// Makes a program belong to the session of a person.
fn surround<'c>(command: &'c mut Command, home: &Path) -> &'c mut Command {
    command.env("DBUS_SESSION_BUS_ADDRESS", format!("unix:path={}", home.join("bus").display()));
    command.env("HOME", home).env("XDG_RUNTIME_DIR", home).env("XDG_DATA_HOME", home.join("data"));
    command.env("XDG_STATE_HOME", home.join("state")).env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY")
}

/// What an authorization server has issued.
#[derive(Default)]
struct Issued {
    renewals: usize,
    refusals: usize,
    expiry: HashMap<String, Instant>,
}

/// Starts a service with an authorization server that replaces a refresh token when it is used, and refuses one that it has replaced.
fn service() -> (String, Arc<Mutex<Issued>>) {
    service_with(|_| ())
}

/// Starts the same service. `renewed` is called with the number of renewals before an answer is sent.
fn service_with(renewed: impl Fn(usize) + Send + 'static) -> (String, Arc<Mutex<Issued>>) {
    let server = Server::http("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", server.server_addr().to_ip().expect("an address"));
    let issued = Arc::new(Mutex::new(Issued::default()));
    let known = Arc::clone(&issued);
    thread::spawn(move || {
        for mut request in server.incoming_requests() {
            let mut body = String::new();
            let _ = request.as_reader().read_to_string(&mut body);
            let (status, answer) = {
                let mut issued = known.lock().unwrap_or_else(PoisonError::into_inner);
                let answer = answer(&request, &body, &mut issued);
                if request.url() == "/token" {
                    renewed(issued.renewals);
                }
                answer
            };
            let is_json = Header::from_bytes("Content-Type", "application/json").expect("a header");
            let _ = request.respond(Response::from_string(answer.to_string()).with_status_code(status).with_header(is_json));
        }
    });
    (url, issued)
}

fn answer(request: &Request, form: &str, issued: &mut Issued) -> (u16, serde_json::Value) {
    if request.url() == "/token" {
        let current = format!("refresh_token={MARK}-refresh-token-{}", issued.renewals);
        if !form.split('&').any(|field| field == current) {
            issued.refusals += 1;
            return (400, json!({ "error": "invalid_grant" }));
        }
        issued.renewals += 1;
        let (refresh, access) =
            (format!("{MARK}-refresh-token-{}", issued.renewals), format!("{MARK}-access-token-{}", issued.renewals));
        issued.expiry.insert(format!("Bearer {access}"), Instant::now() + Duration::from_secs(LIFETIME));
        return (
            200,
            json!({ "access_token": access, "refresh_token": refresh, "token_type": "Bearer", "expires_in": LIFETIME }),
        );
    }
    let header = request.headers().iter().find(|header| header.field.equiv("Authorization"));
    let is_valid = header.and_then(|header| issued.expiry.get(header.value.as_str())).is_some_and(|end| Instant::now() < *end);
    if is_valid { (200, json!({ "client": "person" })) } else { (401, json!({})) }
}

/// Writes a config of this service into the home of the person.
fn write_config(home: &Path, url: &str) {
    let config = json!({ "upstreams": { "crm": {
        "transport": "openapi", "base_url": url, "schema_file": "service.json", "include_operations": ["whoami"],
        "auth": [{ "scheme": "oauth2", "grant": "refresh_token", "token_url": format!("{url}/token"), "client_id": "gate",
            "client_auth": "none" }],
        "allow_insecure_http": true, "allow_insecure_auth": true,
    } } });
    let document = json!({
        "openapi": "3.1.0",
        "info": { "title": "Service", "version": "1" },
        "paths": { "/whoami": { "get": { "operationId": "whoami", "summary": "Names the client", "responses": { "200": { "description": "ok" } } } } },
    });
    for (name, text) in [("upstreams.json", config.to_string()), ("service.json", document.to_string())] {
        fs::write(home.join(name), text).expect("a file");
    }
}

/// Logs in with the first refresh token, which comes from standard input.
fn log_in(desktop: &Desktop) {
    let mut login = desktop.command(&["login", "upstreams.json", "--store", "keyring"]);
    let mut login = login.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("ptc-compile starts");
    login.stdin.take().expect("it is piped").write_all(FIRST_TOKEN.as_bytes()).expect("it reads the token");
    let output = login.wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(0), "crm: logged in\n"));
}

#[test]
#[ignore = "needs gnome-keyring, which .ci/peers installs"]
fn servers_renew_a_login_of_the_keyring_one_at_a_time_and_logout_removes_it() {
    let desktop = Desktop::start();
    let (url, issued) = service();
    write_config(desktop.home.path(), &url);
    let status = |desktop: &Desktop| run(&mut desktop.command(&["login", "upstreams.json", "--status", "--store", "keyring"]));
    let before = status(&desktop);
    assert_eq!((before.code, before.stdout.as_str()), (Some(1), "crm: not logged in\n"), "{}", before.stderr);
    log_in(&desktop);
    assert_eq!(desktop.entries(), 1);
    let after = status(&desktop).success();
    assert!(after.starts_with(&format!("crm: logged in at {url}/token")), "{after}");
    let program = "(:client (:value (tool/call {:server \"crm\" :tool \"whoami\"})))";
    // The second round has other processes, which find what the first ones have stored.
    for _ in 0..2 {
        let mut servers = [desktop.server(), desktop.server()];
        thread::sleep(Duration::from_secs(LIFETIME) + Duration::from_millis(200));
        thread::scope(|scope| {
            let calls = servers.iter_mut().map(|server| scope.spawn(|| server.eval(program)));
            for answer in calls.collect::<Vec<_>>() {
                let answer = answer.join().expect("an answer");
                assert!(answer.contains("\"person\""), "{answer}");
            }
        });
    }
    let (renewals, refusals) = {
        let issued = issued.lock().unwrap_or_else(PoisonError::into_inner);
        (issued.renewals, issued.refusals)
    };
    assert!(renewals >= 3, "the login, and a renewal for each of two expiries: {renewals}");
    assert_eq!(refusals, 0, "no replaced refresh token was sent");
    assert_eq!(desktop.entries(), 1, "an entry is replaced");
    let has_mark = |path: &PathBuf| {
        let bytes = fs::read(path).unwrap_or_default();
        bytes.windows(MARK.len()).any(|window| window == MARK.as_bytes())
    };
    let files = desktop.files();
    assert!(files.iter().any(|path| path.extension().is_some_and(|extension| extension == "keyring")), "{files:?}");
    let with_tokens: Vec<&PathBuf> = files.iter().filter(|path| has_mark(path)).collect();
    assert!(with_tokens.is_empty(), "{with_tokens:?}");

    run(&mut desktop.command(&["logout", "upstreams.json", "--store", "keyring"])).success();
    assert_eq!(desktop.entries(), 0);
    assert_eq!(status(&desktop).stdout, "crm: not logged in\n");
    let answer = desktop.server().eval("(tool/call {:server \"crm\" :tool \"whoami\"})");
    assert!(answer.contains(":auth_expired") && answer.contains("`ptc-compile login CONFIG crm --store keyring`"), "{answer}");
}

/// The keyring is locked while the authorization server answers, so that the refresh token in it is used up.
#[test]
#[ignore = "needs gnome-keyring, which .ci/peers installs"]
fn tokens_renewed_while_the_keyring_is_locked_are_used_for_the_next_renewal() {
    let desktop = Desktop::start();
    let home = desktop.home.path().to_owned();
    let (url, issued) = service_with(move |renewals| {
        if renewals == 2 {
            lock(&home);
        }
    });
    write_config(desktop.home.path(), &url);
    log_in(&desktop);
    let mut server = desktop.server();
    for renewals in [2, 3] {
        thread::sleep(Duration::from_secs(LIFETIME) + Duration::from_millis(200));
        let answer = server.eval("(tool/call {:server \"crm\" :tool \"whoami\"})");
        assert!(answer.contains("\"person\""), "{answer}");
        let issued = issued.lock().unwrap_or_else(PoisonError::into_inner);
        assert_eq!((issued.renewals, issued.refusals), (renewals, 0));
    }
}

#[test]
#[ignore = "needs gnome-keyring, which .ci/peers installs"]
fn locked_keyring_is_reported_with_what_to_do() {
    let desktop = Desktop::start();
    let (url, issued) = service();
    write_config(desktop.home.path(), &url);
    lock(desktop.home.path());
    fs::write(desktop.home.path().join("token"), FIRST_TOKEN).expect("a file");
    for args in [&["login", "--status"][..], &["login"], &["logout"]] {
        let started = Instant::now();
        let token = fs::File::open(desktop.home.path().join("token")).expect("a file");
        let mut command = desktop.command(args);
        let refused = command.args(["upstreams.json", "--store", "keyring"]).stdin(token).output().expect("it starts");
        let message = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{args:?}: {message}");
        let expected = "the keyring of the system is locked; unlock it, or keep the tokens in files";
        assert!(message.contains(expected), "{args:?}: {message}");
        assert!(started.elapsed() < Duration::from_secs(40), "{args:?}: {:?}", started.elapsed());
    }
    let issued = issued.lock().unwrap_or_else(PoisonError::into_inner);
    assert_eq!((issued.renewals, issued.refusals), (0, 0), "nothing is sent");
}
