"""A shop behind HTTP that keeps its orders in SQLite.

Usage: service.py PORT DATABASE

Orders have entity tags: a change needs the current one in `If-Match`. A request to create an order may carry `Idempotency-Key`; a
second request with the same key gets the answer of the first. `GET /state` returns everything that the database holds.
"""

import base64
import email.parser
import email.policy
import json
import re
import sqlite3
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl

SCHEMA = """
create table orders (id integer primary key autoincrement, version integer not null, body text not null, closed integer not null);
create table payments (id integer primary key autoincrement, order_id integer not null, fields text not null);
create table files (id integer primary key autoincrement, order_id integer not null, parts text not null);
create table notes (order_id integer primary key, text text not null);
create table answers (key text primary key, body text not null, answer text not null);
"""


class Refused(Exception):
    def __init__(self, status, why):
        super().__init__(why)
        self.status = status


class Shop:
    """The database. One request uses it at a time."""

    def __init__(self, path):
        self.database = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self.database.execute("pragma synchronous = off")
        self.database.executescript(SCHEMA)
        self.lock = threading.Lock()

    def rows(self, query, *values):
        return self.database.execute(query, values).fetchall()

    def order(self, number):
        rows = self.rows("select version, body, closed from orders where id = ?", number)
        if not rows:
            raise Refused(404, f"there is no order {number}")
        version, body, closed = rows[0]
        return version, json.loads(body), bool(closed)

    def matching(self, number, tag):
        """Returns the order if `tag` is its current entity tag."""
        version, body, closed = self.order(number)
        if tag is None:
            raise Refused(428, "If-Match is missing")
        if tag != entity_tag(version):
            raise Refused(412, f"the order has the entity tag {entity_tag(version)}")
        if closed:
            raise Refused(409, "the order is closed")
        return version, body

    def store(self, number, version, body):
        self.rows("update orders set version = ?, body = ? where id = ?", version + 1, json.dumps(body, sort_keys=True), number)
        return 200, {"id": number, **body}, {"ETag": entity_tag(version + 1)}

    def create(self, body, key):
        for known, answer in self.rows("select body, answer from answers where key = ?", key):
            if known != json.dumps(body, sort_keys=True):
                raise Refused(422, "the key belongs to another request")
            return tuple(json.loads(answer))
        reference = body.get("reference")
        if any(json.loads(other).get("reference") == reference for (other,) in self.rows("select body from orders")):
            raise Refused(409, f"there is an order with the reference {reference}")
        query = "insert into orders (version, body, closed) values (1, ?, 0) returning id"
        ((number,),) = self.rows(query, json.dumps(body, sort_keys=True))
        answer = 201, {"id": number, **body}, {"ETag": entity_tag(1), "Location": f"/v1/orders/{number}"}
        if key is not None:
            self.rows("insert into answers values (?, ?, ?)", key, json.dumps(body, sort_keys=True), json.dumps(answer))
        return answer

    def state(self):
        tables = {name: self.rows(f"select * from {name} order by 1") for name in ("orders", "payments", "files", "notes")}
        # Keys that a client makes itself are random.
        tables["answers"] = self.rows("select * from answers where key like 'given-%' order by 1")
        tables["keys"] = self.rows("select count(*) from answers")
        return tables


def entity_tag(version):
    return f'"v{version}"'


def multipart(content_type, body):
    """Returns the parts as name, file name, type and content in base64."""
    head = f"Content-Type: {content_type}\r\n\r\n".encode()
    message = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(head + body)
    if not message.is_multipart():
        raise Refused(400, "the body is not multipart")
    parts = []
    for part in message.iter_parts():
        name = part.get_param("name", header="content-disposition")
        content = part.get_payload(decode=True)
        kind = part.get_content_type() if "content-type" in part else "text/plain"
        if kind == "application/json":
            content = json.dumps(json.loads(content), sort_keys=True).encode()
        parts.append([name, part.get_filename() is not None, kind, base64.b64encode(content).decode()])
    return parts


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        try:
            with self.server.shop.lock:
                status, value, headers = self.carry_out(body)
        except Refused as why:
            status, value, headers = why.status, {"error": str(why)}, {}
        if status is None:
            # The write is made, and its answer never comes.
            threading.Event().wait()
        content = b"" if value is None else json.dumps(value).encode()
        self.send_response(status)
        for name, text in headers.items():
            self.send_header(name, text)
        if value is not None:
            self.send_header("Content-Type", "application/json")
        if status != 204:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer

    def expect(self, media_type):
        found = self.headers.get("Content-Type", "").split(";")[0]
        if found != media_type:
            raise Refused(415, f"expected {media_type}, got {found}")

    def json(self, body, media_type="application/json"):
        self.expect(media_type)
        return json.loads(body)

    def carry_out(self, body):
        shop, tag = self.server.shop, self.headers.get("If-Match")
        if (self.command, self.path) == ("GET", "/state"):
            return 200, shop.state(), {}
        match = re.fullmatch(r"/v1/orders(?:/(\d+)(?:/(\w+))?)?", self.path)
        if match is None:
            raise Refused(404, "no such path")
        number, part = match[1] and int(match[1]), match[2]
        match self.command, number is not None, part:
            case "POST", False, None:
                return shop.create(self.json(body), self.headers.get("Idempotency-Key"))
            case "GET", True, None:
                version, order, _ = shop.order(number)
                return 200, {"id": number, **order}, {"ETag": entity_tag(version)}
            case "PUT", True, None:
                version, _ = shop.matching(number, tag)
                return shop.store(number, version, self.json(body))
            case "PATCH", True, None:
                version, order = shop.matching(number, tag)
                for name, value in self.json(body, "application/merge-patch+json").items():
                    order.pop(name, None)
                    if value is not None:
                        order[name] = value
                return shop.store(number, version, order)
            case "DELETE", True, None:
                shop.order(number)
                for table, column in (("orders", "id"), ("payments", "order_id"), ("files", "order_id"), ("notes", "order_id")):
                    shop.rows(f"delete from {table} where {column} = ?", number)
                return 204, None, {}
            case "POST", True, "payments":
                self.expect("application/x-www-form-urlencoded")
                fields = parse_qsl(body.decode(), keep_blank_values=True, strict_parsing=True)
                shop.order(number)
                shop.rows("insert into payments (order_id, fields) values (?, ?)", number, json.dumps(fields))
                return 201, {"fields": fields}, {}
            case "POST", True, "files":
                self.expect("multipart/form-data")
                parts = multipart(self.headers["Content-Type"], body)
                shop.order(number)
                shop.rows("insert into files (order_id, parts) values (?, ?)", number, json.dumps(parts))
                return 201, {"parts": len(parts)}, {}
            case "PUT", True, "note":
                self.expect("text/plain")
                shop.order(number)
                shop.rows("insert or replace into notes values (?, ?)", number, body.decode())
                return 200, None, {}
            case "POST", True, "close":
                shop.order(number)
                shop.rows("update orders set closed = 1 where id = ?", number)
                return 303, None, {"Location": f"/v1/orders/{number}"}
            case "POST", True, "ship":
                shop.order(number)
                shop.rows("insert or replace into notes values (?, 'shipped')", number)
                return None, None, {}
        raise Refused(405, "no such operation")


class Server(ThreadingHTTPServer):
    daemon_threads = True


server = Server(("127.0.0.1", int(sys.argv[1])), Handler)
server.shop = Shop(sys.argv[2])
server.serve_forever()
