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

// An issuer that puts the requested resource into `aud`, as RFC 8707 says. A person is `johndoe`, a machine its own name.
const issuer = new OAuth2Server();
await issuer.issuer.keys.generate('RS256');
await issuer.start(0, 'localhost');
let consented;
issuer.service.on('beforeTokenSigning', (token, { body }) => {
  const isMachine = body.grant_type === 'client_credentials';
  const [sub, scope] = isMachine ? [body.client_id, body.scope] : ['johndoe', consented];
  Object.assign(token.payload, { sub, scope, aud: body.resource });
});

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
scopes = ["write"]
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

const machine = (clientId, scope = 'exec') => new ClientCredentialsProvider({
  clientId, scope, clientSecret: 'x', expectedIssuer: issuer.issuer.url,
});
const call = async (client, name, args) => {
  const result = await client.callTool({ name, arguments: args });
  return result.content[0].text;
};
const refused = (status) => (error) => String(error.code ?? error.message).includes(String(status));

const checks = {
  async 'a machine finds the issuer and gets a token'() {
    const client = await connect(machine('alice'));
    assert.match(await call(client, 'Read', { file_path: 'a.txt' }), /one/);
    assert.match(await call(client, 'Bash', { command: 'echo done' }), /done/);
    await client.close();
    const reader = await connect(machine('alice', 'openid read'));
    await assert.rejects(call(reader, 'Bash', { command: 'echo done' }), refused(403));
  },

  async 'a caller without a grant is refused'() {
    await assert.rejects(connect(machine('mallory')), refused(403));
  },

  async 'a person signs in, and consents to more when a call needs it'() {
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
        consented = address.searchParams.get('scope');
        const answer = await fetch(address, { redirect: 'manual' });
        code = new URL(answer.headers.get('location')).searchParams.get('code');
      },
    };
    const first = new StreamableHTTPClientTransport(url, { authProvider: provider });
    await assert.rejects(new Client({ name: 'judge', version: '1' }).connect(first), UnauthorizedError);
    assert.equal(consented, 'read', 'the scope of the challenge');
    await first.finishAuth(code);
    const transport = new StreamableHTTPClientTransport(url, { authProvider: provider });
    const client = new Client({ name: 'judge', version: '1' });
    await client.connect(transport);
    assert.match(await call(client, 'Read', { file_path: 'a.txt' }), /one/);
    const { tools } = await client.listTools();
    const names = tools.map((tool) => tool.name);
    assert.ok(names.includes('Write') && !names.includes('Bash'), 'those that are granted');
    // The issuer issues no new token by the old refresh token: the person must consent.
    delete tokens.refresh_token;
    const write = { file_path: 'new.txt', content: 'new\n' };
    await assert.rejects(call(client, 'Write', write), UnauthorizedError);
    assert.equal(consented, 'write', 'the scope of the tool');
    await transport.finishAuth(code);
    await call(client, 'Write', write);
    assert.equal(fs.readFileSync(path.join(top, 'ws', 'new.txt'), 'utf8'), 'new\n');
    await assert.rejects(call(client, 'Bash', { command: 'true' }), refused(403));
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
