// Runs the protocol's conformance suite against the MCP server over HTTP: `toolcrib serve --http` in the scenarios
// that need no special tools, and an example with our handler, our HTTP transport and the suite's tools in all
// scenarios that a protocol revision requires.
//
// Usage: node conformance.mjs PATH-OF-TOOLCRIB PATH-OF-THE-EXAMPLE PATH-OF-SUITE
//
// The suite cannot send a token, so a small proxy in front of the server adds it and changes nothing else. Fails if
// a check of a scenario fails.

import { spawn } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import readline from 'node:readline';

const [binary, example, suite] = process.argv.slice(2);

// The scenarios by protocol revision. Scenarios that call a tool of the suite are not included, even if a server
// without it passes.
const SCENARIOS = {
  '2025-11-25': ['server-initialize', 'ping', 'tools-list', 'server-sse-multiple-streams',
    'server-session-lifecycle', 'dns-rebinding-protection'],
  '2026-07-28': ['tools-list', 'http-header-validation', 'server-sse-multiple-streams', 'dns-rebinding-protection',
    'input-required-result-unsupported-methods'],
};

// The revisions whose required scenarios all run; none is expected to fail.
const WHOLE_SETS = ['2025-11-25', '2026-07-28'];

const top = fs.mkdtempSync(path.join(os.tmpdir(), 'conformance-'));
const workspace = path.join(top, 'ws');
fs.mkdirSync(workspace);
const tokenFile = path.join(top, 'token');
fs.writeFileSync(tokenFile, `${'0123456789abcdef'.repeat(4)}\n`, { mode: 0o600 });

// Starts a server and a proxy in front of it. Returns both, and the URL of the proxy.
async function serve(program, words) {
  const server = spawn(program, words, { stdio: ['ignore', 'inherit', 'pipe'] });
  const said = await new Promise((resolve) => readline.createInterface(server.stderr).once('line', resolve));
  const [, port, file] = said.match(/http:\/\/127\.0\.0\.1:(\d+)\/mcp; the token is in (.*)$/);
  const token = fs.readFileSync(file, 'utf8').trim();
  const proxy = http.createServer((request, response) => {
    const headers = { ...request.headers, authorization: `Bearer ${token}` };
    // The server expects its own port in its host and origin.
    for (const name of ['host', 'origin']) {
      if (headers[name]) headers[name] = headers[name].replace(`:${proxy.address().port}`, `:${port}`);
    }
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

// Runs the suite. Returns whether it passed, and its output.
async function runSuite(...words) {
  const run = spawn(process.execPath, [suite, ...words], { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  run.stdout.on('data', (data) => { output += data; });
  run.stderr.on('data', (data) => { output += data; });
  const code = await new Promise((resolve) => run.on('close', resolve));
  return { passed: code === 0, output };
}

function report(what, fine, output) {
  console.log(`${what}: ${fine ? 'passed' : 'FAILED'}`);
  if (!fine) failed.push(`${what}\n${output}`);
}

async function checkScenarios(name, url) {
  for (const [revision, scenarios] of Object.entries(SCENARIOS)) {
    for (const scenario of scenarios) {
      const { passed, output } = await runSuite('server', '--url', url, '--scenario', scenario, '--spec-version', revision);
      const checks = [...output.matchAll(/\[[\w-]+ *\] \S*(SUCCESS|FAILURE|WARNING)/g)];
      const fine = passed && checks.length > 0 && checks.every(([, how]) => how === 'SUCCESS');
      report(`${name} ${revision} ${scenario}, ${checks.length} checks`, fine, output);
    }
  }
}

// A set also fails if a required scenario did not run or has no checks.
async function checkRequiredSets(name, url) {
  for (const revision of WHOLE_SETS) {
    const listed = (await runSuite('list', '--requirements', revision)).output;
    const [, ofServers] = listed.match(/^Server scenarios.*:\n((?: {2}- .*\n)+)/m);
    const required = [...ofServers.matchAll(/^ {2}- (\S+)/gm)].map(([, scenario]) => scenario);
    const results = path.join(top, revision);
    const { passed, output } = await runSuite('server', '--url', url, '--requirements', revision, '-o', results);
    const checks = required.map((scenario) => checksOf(results, scenario));
    const fine = passed && checks.every((all) => all.length > 0 && all.every(isSuccess));
    report(`${name} ${revision}, all ${required.length} scenarios, ${checks.flat().length} checks`, fine, output);
  }
}

// The checks of a scenario. The name of its directory ends with a timestamp.
function checksOf(results, scenario) {
  const named = new RegExp(`^server-${scenario}-\\d{4}-\\d\\d-\\d\\dT`);
  const directory = fs.readdirSync(results).find((entry) => named.test(entry));
  const all = directory ? JSON.parse(fs.readFileSync(path.join(results, directory, 'checks.json'), 'utf8')) : [];
  return all.filter((check) => check.status !== 'INFO');
}

function isSuccess(check) {
  return check.status === 'SUCCESS';
}

async function checkServer(name, { server, proxy, url }, by) {
  await by(name, url);
  server.kill();
  proxy.close();
}

const state = path.join(top, 'state');
const ours = ['serve', '--root', workspace, '--state', state, '--http', 'localhost:0'];
await checkServer('toolcrib', await serve(binary, ours), checkScenarios);
await checkServer('with fixtures', await serve(example, [workspace, tokenFile]), checkRequiredSets);
fs.rmSync(top, { recursive: true });
if (failed.length > 0) {
  console.error(failed.join('\n'));
  process.exit(1);
}
process.exit(0);
