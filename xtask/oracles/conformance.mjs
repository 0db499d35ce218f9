// Does `toolcrib serve --http` pass the protocol's own conformance suite, in the scenarios that need no
// made-up tools?
//
// Usage: node conformance.mjs PATH-OF-TOOLCRIB PATH-OF-SUITE
//
// The suite cannot send a token, so a small proxy stands before the server and adds it; nothing else is
// changed. Fails if a check of a scenario fails.

import { spawn } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import readline from 'node:readline';

const [binary, suite] = process.argv.slice(2);

// Each with the revision of the protocol that it is asked in.
const SCENARIOS = {
  '2025-11-25': ['server-initialize', 'ping', 'tools-list', 'server-sse-multiple-streams',
    'server-session-lifecycle', 'dns-rebinding-protection'],
  '2026-07-28': ['server-stateless', 'tools-list', 'http-header-validation', 'dns-rebinding-protection', 'input-required-result-unsupported-methods',
    'input-required-result-ignore-extra-params', 'input-required-result-validate-input'],
};

// Checks in them that call a made-up tool after all.
const NEED_A_FIXTURE = ['sep-2575-server-rejects-undeclared-capability', 'sep-2575-missing-capability-http-400'];

const top = fs.mkdtempSync(path.join(os.tmpdir(), 'conformance-'));
fs.mkdirSync(path.join(top, 'ws'));
const server = spawn(binary,
  ['serve', '--root', path.join(top, 'ws'), '--state', path.join(top, 'state'), '--http', 'localhost:0'],
  { stdio: ['ignore', 'inherit', 'pipe'] });
const said = await new Promise((resolve) => readline.createInterface(server.stderr).once('line', resolve));
const [, port, file] = said.match(/http:\/\/127\.0\.0\.1:(\d+)\/mcp; the token is in (.*)$/);
const token = fs.readFileSync(file, 'utf8').trim();

const proxy = http.createServer((request, response) => {
  const headers = { ...request.headers, authorization: `Bearer ${token}` };
  // The server's own origin is that of the port which it has itself.
  if (headers.origin) headers.origin = headers.origin.replace(`:${proxy.address().port}`, `:${port}`);
  const options = { host: '127.0.0.1', port, method: request.method, path: request.url, headers };
  const onward = http.request(options, (answer) => {
    response.writeHead(answer.statusCode, answer.headers);
    answer.pipe(response);
  });
  onward.on('error', () => response.destroy());
  response.on('close', () => onward.destroy());
  request.pipe(onward);
});
await new Promise((resolve) => proxy.listen(0, '127.0.0.1', resolve));

const failed = [];
for (const [revision, scenarios] of Object.entries(SCENARIOS)) {
  for (const scenario of scenarios) {
    const url = `http://localhost:${proxy.address().port}/mcp`;
    const words = [suite, 'server', '--url', url, '--scenario', scenario, '--spec-version', revision];
    const run = spawn(process.execPath, words, { stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    run.stdout.on('data', (data) => { output += data; });
    run.stderr.on('data', (data) => { output += data; });
    const code = await new Promise((resolve) => run.on('close', resolve));
    const checks = [...output.matchAll(/\[([\w-]+) *\] \S*(SUCCESS|FAILURE)/g)];
    const bad = checks.filter(([, id, how]) => how === 'FAILURE' && !NEED_A_FIXTURE.includes(id));
    const fine = checks.length > 0 && bad.length === 0 && (code === 0 || scenario === 'server-stateless');
    console.log(`${revision} ${scenario}: ${fine ? 'passed' : 'FAILED'}, ${checks.length - bad.length} checks`);
    if (!fine) failed.push(`${revision} ${scenario}\n${output}`);
  }
}
server.kill();
proxy.close();
fs.rmSync(top, { recursive: true });
if (failed.length > 0) {
  console.error(failed.join('\n'));
  process.exit(1);
}
process.exit(0);
