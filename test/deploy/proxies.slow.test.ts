import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { connect } from 'node:http2'
import { request } from 'node:https'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { serverCertificate } from '../support/certificate.ts'
import { emptyFolder } from '../support/ev-process.ts'
import { freePort } from '../support/free-port.ts'
import { codeBlocks } from '../support/markdown.ts'
import { type ServiceProcess, startService } from '../support/service-process.ts'

// The configurations of docs/service.md, with their ports and paths replaced, in the proxies that are
// installed on this machine.

const HOST = 'ev.example.com'
/** The address of the client. The proxies and the service have 127.0.0.1. */
const CLIENT = '127.0.0.2'

type Proxy = {
  readonly language: string
  readonly program: string
  /** Completes the block of the page to a configuration. */
  readonly complete: (block: string, folder: string) => string
  readonly args: (file: string, folder: string) => readonly string[]
  /** Whether the service receives an upload while the client sends it, and not afterwards. */
  readonly isStreaming: boolean
}

const TEMPORARY = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
const APACHE_MODULES = [
  ...['mpm_event', 'authz_core', 'socache_shmcb'],
  ...['ssl', 'http2', 'proxy', 'proxy_http'],
]

const PROXIES: readonly Proxy[] = [
  {
    language: 'nginx',
    program: 'nginx',
    complete: (block, folder) =>
      `${process.getuid?.() === 0 ? 'user root; ' : ''}daemon off; pid ${folder}/pid; error_log stderr; events {}
      http { access_log off; ${TEMPORARY.map(one => `${one}_temp_path ${folder}/${one};`).join(' ')}
      ${block} }`,
    args: (file, folder) => ['-p', folder, '-c', file],
    isStreaming: false,
  },
  {
    language: 'apache',
    program: 'apache2',
    complete: (block, folder) =>
      `${APACHE_MODULES.map(one => `LoadModule ${one}_module /usr/lib/apache2/modules/mod_${one}.so`).join('\n')}
      ServerRoot ${folder}\nPidFile ${folder}/pid\nErrorLog ${folder}/error.log\nDefaultRuntimeDir ${folder}\nServerName ${HOST}
      User daemon\nGroup daemon\n${block.replace(/<VirtualHost \*:(\d+)>/, 'Listen 127.0.0.1:$1\n$&')}`,
    args: file => ['-f', file, '-DFOREGROUND'],
    isStreaming: false,
  },
  {
    language: 'haproxy',
    program: 'haproxy',
    complete: block => `${block}\n`,
    args: file => ['-f', file],
    isStreaming: true,
  },
  {
    language: 'caddyfile',
    program: 'caddy',
    complete: (block, folder) =>
      `{\n  admin off\n  auto_https disable_redirects\n}\n${block.replace('{', `{\n  tls ${folder}/fullchain.pem ${folder}/privkey.pem`)}`,
    args: file => ['run', '--config', file, '--adapter', 'caddyfile'],
    isStreaming: true,
  },
]

const isInstalled = (program: string) => spawnSync(program, ['-v']).error === undefined

/** Puts a port for 443 and the addresses of this test into a configuration. */
const adapt = (config: string, port: number, folder: string, service: string) =>
  config
    .replaceAll('127.0.0.1:8080', new URL(service).host)
    .replaceAll('/etc/ssl/ev', folder)
    .replace('listen 443', `listen ${port}`)
    .replaceAll(':443', `:${port}`)
    .replace(/^ev\.example\.com \{/m, `${HOST}:${port} {`)

let service: ServiceProcess

beforeAll(async () => {
  service = await startService(emptyFolder(), [
    ...['--trust-proxy', '127.0.0.1', '--base-url', `https://${HOST}`],
    ...['--limits', 'off', '--dns-check-names', 'off'],
  ])
})

afterAll(async () => {
  await service.end('SIGTERM')
})

/** Starts a proxy; it is stopped after the test. */
async function startProxy({ language, program, complete, args }: Proxy): Promise<number> {
  const folder = emptyFolder()
  const { cert, key } = serverCertificate()
  writeFileSync(join(folder, 'fullchain.pem'), cert)
  writeFileSync(join(folder, 'privkey.pem'), key)
  writeFileSync(join(folder, 'ev.pem'), `${cert}${key}`)
  const block = codeBlocks('docs/service.md').find(one => one.language === language)?.text ?? ''
  const port = await freePort()
  const file = join(folder, 'config')
  writeFileSync(file, `${adapt(complete(block, folder), port, folder, service.url)}\n`)
  const child = spawn(program, args(file, folder), {
    env: { ...process.env, HOME: folder, XDG_DATA_HOME: folder },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const log = text(child.stderr)
  onTestFinished(() => stop(child))
  const ended = once(child, 'exit').then(async () => Promise.reject(new Error(await log)))
  await Promise.race([isOpen(port), ended])
  return port
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGTERM')
  await once(child, 'exit')
}

const isOpen = (port: number) =>
  expect
    .poll(
      () =>
        send(port, { path: '/livez' }).then(
          ({ status }) => status,
          () => 0,
        ),
      { timeout: 20_000 },
    )
    .toBe(200)

type Sent = {
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
}

/** Sends a request by HTTP/1.1 on a connection of its own. */
async function send(port: number, { path, headers, body }: Sent) {
  const sent = request({
    host: '127.0.0.1',
    port,
    path,
    servername: HOST,
    localAddress: CLIENT,
    rejectUnauthorized: false,
    agent: false,
    method: body === undefined ? 'GET' : 'POST',
    headers: { Host: HOST, ...headers },
  })
  const answered = once(sent, 'response')
  // An upload that is refused can be cut off after its response.
  sent.on('error', () => {})
  sent.end(body)
  const [response] = await answered
  return { status: response.statusCode, headers: response.headers, text: await text(response) }
}

/** Sends a part of an upload by HTTP/2, and cancels it once it is answered. Returns the status. */
async function cancelUpload(port: number): Promise<number | undefined> {
  const session = connect(`https://127.0.0.1:${port}`, {
    servername: HOST,
    rejectUnauthorized: false,
  })
  const stream = session.request({
    ':authority': HOST,
    ':method': 'POST',
    ':path': '/v1/verify/batch',
    authorization: 'Bearer none',
    'content-type': 'application/json',
    'content-length': '1000',
  })
  stream.write('[')
  const [headers] = await once(stream, 'response')
  stream.resume()
  stream.close(CANCEL)
  await once(stream, 'close')
  session.destroy()
  return headers[':status']
}

/** More than the kernel buffers. */
const LARGE = 15_000_000
/** Caddy resets a client that sends much more after the response. */
const SMALL = 100_000

/** RFC 9113 §7. */
const CANCEL = 8

const JSON_BODY = { 'Content-Type': 'application/json' }

describe.each(PROXIES)('behind $program', proxy => {
  test.runIf(isInstalled(proxy.program))('the service keeps its promises', async () => {
    const port = await startProxy(proxy)
    const authorized = { Authorization: `Bearer ${service.key}` }

    // The client address, whatever the client says about it.
    const created = await send(port, {
      path: '/v1/keys',
      headers: { ...authorized, ...JSON_BODY, 'X-Forwarded-For': '203.0.113.9' },
      body: JSON.stringify({ name: 'here', scopes: ['account:read'], allowed_ips: [CLIENT] }),
    })
    expect(created.status).toBe(201)
    const audit = await send(port, { path: '/v1/audit?limit=1', headers: authorized })
    expect(JSON.parse(audit.text)).toMatchObject({ data: { items: [{ ip: CLIENT }] } })

    // A stream of events, and a path with an encoded slash.
    const events = await send(port, {
      path: '/v1/verify/single',
      headers: { ...authorized, ...JSON_BODY, Accept: 'text/event-stream', 'X-EV-Sandbox': 'true' },
      body: JSON.stringify({ email: 'valid@example.com' }),
    })
    expect(events.text).toMatch(/^event: step\n.*^event: result\n/ms)
    const slash = await send(port, { path: '/v1/jobs/a%2Fb', headers: authorized })
    expect(JSON.parse(slash.text)).toMatchObject({ error: 'Job a/b does not exist.' })

    // An upload that is refused before it has arrived: not a 502.
    for (let n = 0; n < 5; n++) {
      const refused = await send(port, {
        path: '/v1/verify/batch',
        headers: { Authorization: 'Bearer none', ...JSON_BODY },
        body: Buffer.alloc(proxy.isStreaming ? SMALL : LARGE, 'x'),
      })
      expect([refused.status, JSON.parse(refused.text).code]).toEqual([401, 'authentication_error'])
    }

    // By HTTP/2, an upload that the client cancels after the refusal: the next request is not taken
    // for its rest.
    for (let n = 0; n < 5 && proxy.isStreaming; n++) {
      const refused = await cancelUpload(port)
      expect(refused).toBe(401)
      expect((await send(port, { path: '/livez' })).status).toBe(200)
    }

    // Signing in to the dashboard, with a cookie for TLS only.
    const signedIn = await send(port, {
      path: '/sign-in',
      headers: {
        'Content-Type': 'application/x-www-form-urlencoded',
        Origin: `https://${HOST}`,
      },
      body: new URLSearchParams({ key: service.key }).toString(),
    })
    expect([signedIn.status, signedIn.headers.location]).toEqual([303, '/overview'])
    expect(String(signedIn.headers['set-cookie'])).toMatch(/^__Host-ev_session=.*Secure/)
  })
})
