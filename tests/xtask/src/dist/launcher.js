#!/usr/bin/env node
// Starts the ptc-compile of this platform, which is in a package of its own.
'use strict';

const { spawn } = require('node:child_process');
const path = require('node:path');

const name = `ptc-compile-${process.platform}-${process.arch}`;
let program;
try {
  program = path.join(path.dirname(require.resolve(`${name}/package.json`)), 'bin', 'ptc-compile');
} catch {
  console.error(`error: there is no ptc-compile for ${process.platform} on ${process.arch}: the package ${name} is not installed`);
  process.exit(2);
}

const child = spawn(program, process.argv.slice(2), { stdio: 'inherit' });
// A terminal sends Ctrl-C to both processes. A second one would end the wait for calls that are running.
process.on('SIGINT', () => {});
for (const signal of ['SIGTERM', 'SIGHUP']) {
  process.on(signal, () => child.kill(signal));
}
child.on('error', (error) => {
  console.error(`error: cannot start ${program}: ${error.message}`);
  process.exit(2);
});
child.on('exit', (code, signal) => {
  if (signal) {
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  } else {
    process.exit(code);
  }
});
