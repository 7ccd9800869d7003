import { execFileSync, spawn } from 'node:child_process'
import { closeSync, constants, existsSync, openSync, readFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { onFileFinished } from '../../support/cleanup.ts'
import { EV, emptyFolder, type Running, startEv } from '../../support/ev-process.ts'
import { waitUntil } from '../../support/wait.ts'

const ANY_PORT = ['--listen', '127.0.0.1:0', '--helo', 'probe.example.com']

type Serving = Running & {
  readonly home: string
  readonly url: string
  /** The first key, as printed to stdout. */
  readonly key: string
  ask(path: string, init?: RequestInit): Promise<Response>
}

/** Starts `ev serve` on a free port; its log lines are JSON. */
async function serve(
  args: readonly string[] = [],
  { home = emptyFolder(), environment = {} } = {},
): Promise<Serving> {
  const ran = startEv(['serve', '--data-dir', 'data', ...ANY_PORT, ...args], { home, environment })
  let out = ''
  let log = ''
  ran.child.stdout?.on('data', text => {
    out += text
  })
  ran.child.stderr?.on('data', text => {
    log += text
  })
  await ran.printed('API documentation:', 'stderr')
  // stdout and stderr of a process arrive in any order.
  if (log.includes('The first key, ')) await ran.printed('\n', 'stdout')
  const url = /listening on (\S+?)"/.exec(log)?.[1] ?? ''
  const key = out.trim()
  const ask: Serving['ask'] = (path, init = {}) =>
    fetch(`${url}${path}`, {
      ...init,
      headers: { authorization: `Bearer ${key}`, ...init.headers },
    })
  return { ...ran, home, url, key, ask }
}

const verify = (headers: Record<string, string> = {}): RequestInit => ({
  method: 'POST',
  headers: { 'content-type': 'application/json', 'x-ev-sandbox': 'true', ...headers },
  body: JSON.stringify({ email: 'valid@example.com' }),
})

describe.concurrent('a service that receives SIGTERM', () => {
  test('exits at once at the second signal', async () => {
    const { child, ended, ask } = await serve()
    const asked = ask('/v1/verify/single', verify({ 'x-ev-sandbox-delay': '20000' })).catch(
      () => null,
    )
    await wait(500)
    child.kill('SIGTERM')
    await wait(200)
    child.kill('SIGTERM')
    expect((await ended).code).toBe(130)
    expect(await asked).toBeNull()
  })

  test.runIf(existsSync('/dev/full'))('exits if its log is on a full disk', async () => {
    const full = openSync('/dev/full', 'w')
    expect(await stopWithLog(full)).toBe(0)
    closeSync(full)
  })

  test.skipIf(process.platform === 'win32')('exits if nobody reads its log', async () => {
    const log = fullPipe()
    expect(await stopWithLog(log)).toBe(0)
    closeSync(log)
  })
})

test.runIf(existsSync('/usr/bin/script') && process.platform === 'linux')(
  'a service ends when its terminal is closed',
  async () => {
    const command = [process.execPath, EV, 'serve', '--data-dir', 'data', ...ANY_PORT].join(' ')
    const terminal = spawn('script', ['-qec', `exec ${command}`, '/dev/null'], {
      cwd: emptyFolder(),
      env: { PATH: process.env.PATH },
      stdio: ['pipe', 'pipe', 'ignore'],
    })
    onFileFinished(() => terminal.kill('SIGKILL'))
    let screen = ''
    terminal.stdout.on('data', text => {
      screen += text
    })
    await waitUntil(() => screen.includes('Press Ctrl-C'))
    const { pid } = terminal
    const service = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim()
    expect(readFileSync(`/proc/${service}/cmdline`, 'utf8')).toContain('\0serve\0')
    terminal.kill('SIGKILL')
    await waitUntil(() => !existsSync(`/proc/${service}`))
  },
)

/** Starts a service, stops it once it has printed its key, and returns its exit code. */
async function stopWithLog(stderr: number): Promise<number | null> {
  const args = ['serve', '--data-dir', 'data', ...ANY_PORT]
  const { child, printed, ended } = startEv(args, { home: emptyFolder(), stderr })
  await printed('ev_live_')
  child.kill('SIGTERM')
  return (await ended).code
}

/** Returns the file descriptor of a full pipe without a reader. */
function fullPipe(): number {
  const path = join(emptyFolder(), 'log')
  execFileSync('mkfifo', [path])
  const pipe = openSync(path, constants.O_RDWR | constants.O_NONBLOCK)
  const isTaken = () => {
    try {
      return writeSync(pipe, '-'.repeat(4096)) > 0
    } catch {
      return false
    }
  }
  while (isTaken());
  return pipe
}
