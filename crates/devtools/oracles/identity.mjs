// Checks `toolcrib serve --http --identity` with an issuer of access tokens and with the client of the protocol's own SDK,
// which finds the issuer, gets tokens, and asks for more scopes when a call needs them.
//
// Usage: node identity.mjs PATH-OF-TOOLCRIB PATH-OF-NODE-MODULES
//
// Stops at the first failure.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import readline from 'node:readline';
import { pathToFileURL } from 'node:url';

const [binary, modules] = process.argv.slice(2);
const load = (file) => import(pathToFileURL(path.join(modules, file)).href);
const sdk = '@modelcontextprotocol/sdk/dist/esm/client';
const { OAuth2Server } = await load('oauth2-mock-server/dist/index.mjs');
const { Client } = await load(`${sdk}/index.js`);
const { StreamableHTTPClientTransport } = await load(`${sdk}/streamableHttp.js`);
const { ClientCredentialsProvider } = await load(`${sdk}/auth-extensions.js`);
const { UnauthorizedError } = await load(`${sdk}/auth.js`);

const top = fs.mkdtempSync(path.join(os.tmpdir(), 'identity-'));
fs.mkdirSync(path.join(top, 'ws'));
fs.writeFileSync(path.join(top, 'ws', 'a.txt'), 'one\n');

// An issuer that puts the requested resource into `aud`, as RFC 8707 says, and the name of the client into `sub`.
const issuer = new OAuth2Server();
await issuer.issuer.keys.generate('RS256');
await issuer.start(0, 'localhost');
const requested = [];
issuer.service.on('beforeTokenSigning', (token, request) => {
  const basic = request.headers.authorization?.replace('Basic ', '') ?? '';
  token.payload.sub = Buffer.from(basic, 'base64').toString().split(':')[0] || 'johndoe';
  token.payload.aud = request.body.resource;
  token.payload.scope = request.body.scope ?? scopeOfCode;
  requested.push(token.payload.scope);
});
let scopeOfCode;

const settings = path.join(top, 'identity.toml');
fs.writeFileSync(settings, `
initial_scopes = ["read"]

[[issuer]]
url = "${issuer.issuer.url}"

[[grant]]
subject = "alice"
scopes = ["exec"]

[[grant]]
subject = "johndoe"
scopes = ["read"]
`, { mode: 0o600 });
const words = ['serve', '--http', '127.0.0.1:0', '--root', path.join(top, 'ws'), '--state', path.join(top, 'state'),
  '--identity', settings, '--no-monitor'];
const server = spawn(binary, words, { stdio: ['ignore', 'inherit', 'pipe'] });
const said = await new Promise((resolve) => readline.createInterface(server.stderr).once('line', resolve));
const url = new URL(said.match(/http:\/\/127\.0\.0\.1:\d+\/mcp/)[0]);

async function connect(provider) {
  const client = new Client({ name: 'judge', version: '1' });
  await client.connect(new StreamableHTTPClientTransport(url, { authProvider: provider }));
  return client;
}

const machine = (name) => new ClientCredentialsProvider({ clientId: name, clientSecret: 'x' });
const call = async (client, name, args) => {
  const result = await client.callTool({ name, arguments: args });
  return result.content[0].text;
};
const refused = (status) => (error) => String(error.code ?? error.message).includes(String(status));

const checks = {
  async 'a client finds the issuer and asks for more scopes'() {
    const client = await connect(machine('alice'));
    assert.deepEqual(requested, ['read'], 'the scope of the challenge');
    assert.match(await call(client, 'Read', { file_path: 'a.txt' }), /one/);
    const { tools } = await client.listTools();
    assert.ok(tools.some((tool) => tool.name === 'Bash'));
    assert.match(await call(client, 'Bash', { command: 'echo done' }), /done/);
    assert.deepEqual(requested, ['read', 'exec']);
    await client.close();
  },

  async 'a caller without a grant is refused'() {
    await assert.rejects(connect(machine('mallory')), refused(403));
  },

  async 'a person signs in with a code'() {
    let code, tokens, verifier;
    const provider = {
      redirectUrl: 'http://127.0.0.1:1/callback',
      clientMetadata: { redirect_uris: ['http://127.0.0.1:1/callback'], token_endpoint_auth_method: 'none' },
      clientInformation: () => ({ client_id: 'judge' }),
      tokens: () => tokens,
      saveTokens: (given) => { tokens = given; },
      saveCodeVerifier: (given) => { verifier = given; },
      codeVerifier: () => verifier,
      async redirectToAuthorization(address) {
        assert.equal(address.searchParams.get('resource'), url.href);
        scopeOfCode = address.searchParams.get('scope');
        const answer = await fetch(address, { redirect: 'manual' });
        code = new URL(answer.headers.get('location')).searchParams.get('code');
      },
    };
    const transport = new StreamableHTTPClientTransport(url, { authProvider: provider });
    await assert.rejects(new Client({ name: 'judge', version: '1' }).connect(transport), UnauthorizedError);
    await transport.finishAuth(code);
    const client = await connect(provider);
    assert.match(await call(client, 'Read', { file_path: 'a.txt' }), /one/);
    const { tools } = await client.listTools();
    assert.ok(!tools.some((tool) => tool.name === 'Bash'), 'it is not granted');
    await client.close();
  },

  async 'a new key of the issuer is used'() {
    const key = await issuer.issuer.keys.generate('ES256');
    const names = new Set();
    // The server reads keys again after some seconds at the earliest.
    for (let attempt = 0; attempt < 120 && !names.has(key.kid); attempt += 1) {
      const provider = machine('alice');
      const client = await connect(provider).catch(() => null);
      const token = provider.tokens()?.access_token;
      if (client && token) names.add(JSON.parse(Buffer.from(token.split('.')[0], 'base64url')).kid);
      await client?.close();
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
    assert.ok(names.has(key.kid));
  },

  async 'tokens work while the issuer is down'() {
    const client = await connect(machine('alice'));
    await issuer.stop();
    assert.match(await call(client, 'Read', { file_path: 'a.txt' }), /one/);
    await client.close();
  },
};

try {
  for (const [name, check] of Object.entries(checks)) {
    await check();
    console.log(name);
  }
} finally {
  server.kill();
  if (issuer.listening) await issuer.stop();
  fs.rmSync(top, { recursive: true, force: true });
}
