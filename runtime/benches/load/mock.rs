//! A mock upstream on a thread of its own that answers immediately, after a delay or never, on thousands of connections. It can
//! be killed and started again at the same address.

use std::net::SocketAddr;
use std::time::Duration;

use memchr::memmem;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

/// Path that is answered immediately.
pub(crate) const NOW: &str = "/now";
/// Path that is answered after one second.
pub(crate) const WAIT: &str = "/wait";
/// Path that is never answered.
pub(crate) const HANG: &str = "/hang";

/// Delay of answers to [`WAIT`].
const DELAY: Duration = Duration::from_secs(1);
/// Length of the listening socket's accept queue.
const BACKLOG: u32 = 4096;
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 15\r\n\r\n{\"waited\":true}";

/// A running mock upstream. It ends with the process.
pub(crate) struct Mock {
    pub(crate) address: SocketAddr,
    commands: mpsc::UnboundedSender<Command>,
}

/// A command to the mock's thread, with a channel that reports completion.
enum Command {
    /// Drops the listening socket and every connection.
    Kill(oneshot::Sender<()>),
    Start(oneshot::Sender<()>),
}

impl Mock {
    pub(crate) fn start() -> Mock {
        let (commands, received) = mpsc::unbounded_channel();
        let (ready, address) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = listen("127.0.0.1:0".parse().unwrap());
                let address = listener.local_addr().unwrap();
                ready.send(address).unwrap();
                accept(address, listener, received).await;
            });
        });
        Mock { address: address.recv().unwrap(), commands }
    }

    pub(crate) async fn kill(&self) {
        self.command(Command::Kill).await;
    }

    pub(crate) async fn start_again(&self) {
        self.command(Command::Start).await;
    }

    async fn command(&self, command: fn(oneshot::Sender<()>) -> Command) {
        let (done, wait) = oneshot::channel();
        assert!(self.commands.send(command(done)).is_ok(), "the mock upstream ended");
        wait.await.unwrap();
    }
}

fn listen(address: SocketAddr) -> TcpListener {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_reuseaddr(true).unwrap();
    socket.bind(address).unwrap();
    socket.listen(BACKLOG).unwrap()
}

async fn accept(address: SocketAddr, listener: TcpListener, mut commands: mpsc::UnboundedReceiver<Command>) {
    let mut listener = Some(listener);
    let mut connections = JoinSet::new();
    loop {
        let accepted = async {
            match &listener {
                Some(listener) => listener.accept().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            command = commands.recv() => match command {
                Some(Command::Kill(done)) => {
                    listener = None;
                    connections.shutdown().await;
                    let _ = done.send(());
                }
                Some(Command::Start(done)) => {
                    listener = Some(listen(address));
                    let _ = done.send(());
                }
                None => return,
            },
            Ok((stream, _)) = accepted => drop(connections.spawn(serve(stream))),
            // Finished connections have to be removed from the set.
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
        }
    }
}

/// Answers requests without a body until the connection ends.
async fn serve(mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut received = Vec::with_capacity(512);
    loop {
        let end = loop {
            if let Some(end) = memmem::find(&received, b"\r\n\r\n") {
                break end + 4;
            }
            if stream.read_buf(&mut received).await? == 0 {
                return Ok(());
            }
        };
        let is = |path: &str| received[..end].strip_prefix(b"GET ").is_some_and(|rest| rest.starts_with(path.as_bytes()));
        if is(HANG) {
            return stream.read(&mut [0; 1]).await.map(drop);
        }
        if is(WAIT) {
            tokio::time::sleep(DELAY).await;
        }
        stream.write_all(ANSWER).await?;
        received.drain(..end);
    }
}
