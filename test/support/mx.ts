import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Duplex, duplexPair } from 'node:stream'
import type { Dial, Target } from '../../src/engine/smtp/dial.ts'

/**
 * A dialogue in progress: the client's socket, and a promise that resolves when all lines matched.
 */
export type PlayedSession = { readonly socket: Duplex; readonly done: Promise<void> }

const SESSIONS = join(import.meta.dirname, '../../fixtures/session')

/**
 * Plays the server of a dialogue: text of `S: …` and `C: …` lines, or the name of a file in
 * fixtures/session. `done` rejects at the first line that differs, at a line sent too early, and
 * when the client leaves early. `S: <close>` closes the connection and `S: <reset>` resets it; `#`
 * starts a comment. A client that waits for a line that the dialogue does not have waits until the
 * test times out.
 */
export function playSession(dialogue: string): PlayedSession {
  const [socket, server] = duplexPair()
  const steps = readDialogue(dialogue)
  const lines = new LineQueue(server)
  const done = play(steps, lines, { client: socket, server }).catch(error => {
    server.destroy()
    socket.destroy()
    throw error
  })
  return { socket, done }
}

/** A dial that plays one dialogue per connection; further connections are refused. */
export function playedMx(...dialogues: readonly string[]) {
  const secured: string[] = []
  const dialled: Target[] = []
  const played: Promise<void>[] = []
  return {
    dialled,
    /** Settles when the dialogues of all connections so far have ended. */
    done: () => Promise.all(played).then(() => undefined),
    async connect(to: Target, _signal?: AbortSignal): Promise<Duplex> {
      const dialogue = dialogues[dialled.length]
      dialled.push(to)
      if (dialogue === undefined) throw refused(to)
      const session = playSession(dialogue)
      played.push(session.done)
      return session.socket
    },
    /** Hosts with a TLS handshake; the session continues in plain text. */
    secured,
    secure: fakeTls(secured),
  } satisfies Dial & Record<string, unknown>
}

/**
 * A scripted reply: text of one or several replies (lines separated by LF), null for none, a
 * hang-up, or undefined for the default reply.
 */
export type MxSays = string | null | typeof HANG_UP | undefined

/** As a reply, closes the connection. */
export const HANG_UP = Symbol('hang up')

/** A connection to a scripted server. */
export type MxSession = {
  readonly to: Target
  /** Number of the connection, from 0. */
  readonly number: number
  /** The lines that the client sent, in order. */
  readonly lines: string[]
  /** Sends text without a command. */
  say(text: string): void
  hangUp(): void
  /** Resets the connection. */
  reset(): void
  /** Whether either side has closed the connection. */
  closed: boolean
}

export type MxScript = {
  /** The greeting; null sends none. Default: by the name of the host. */
  greeting?: string | null | ((session: MxSession) => MxSays)
  /** Returns the reply to a line. */
  answer?: (line: string, session: MxSession) => MxSays | Promise<MxSays>
  /** Called before each connection; may throw to refuse it. */
  connect?: (to: Target) => void
  /** Called instead of the TLS handshake; may throw to fail it. */
  secure?: (host: string) => void
}

/** A dial to scripted servers; `sessions` and `dialled` record the connections. */
export function scriptedMx(script: MxScript | NonNullable<MxScript['answer']>) {
  const { greeting, answer, connect, secure }: MxScript =
    typeof script === 'function' ? { answer: script } : script
  const dialled: Target[] = []
  const sessions: MxSession[] = []
  const secured: string[] = []
  return {
    dialled,
    sessions,
    /** The lines of all sessions, in order. */
    lines: () => sessions.flatMap(session => session.lines),
    async connect(to: Target, signal?: AbortSignal): Promise<Duplex> {
      signal?.throwIfAborted()
      dialled.push(to)
      connect?.(to)
      const [socket, server] = duplexPair()
      const session = openSession(to, sessions.length, { client: socket, server })
      sessions.push(session)
      const hello = typeof greeting === 'function' ? greeting(session) : greeting
      void serve(server, session, hello === undefined ? `220 ${to.host} ESMTP` : hello, answer)
      return socket
    },
    /** Hosts with a TLS handshake; the session continues in plain text. */
    secured,
    secure: fakeTls(secured, secure),
  } satisfies Dial & Record<string, unknown>
}

/** Fails every connection, for tests without mail servers. */
export const closedDial: Dial = {
  connect: to => Promise.reject(new Error(`${to.ip} was dialled`)),
  secure: () => Promise.reject(new Error('TLS was asked for')),
}

/** Neither accepts nor refuses connections, until the signal aborts. */
export const silentDial: Dial = {
  connect: (_, signal) =>
    new Promise((_, reject) =>
      signal.addEventListener('abort', () => reject(new Error('given up')), { once: true }),
    ),
  secure: async socket => socket,
}

/** Fakes STARTTLS without encryption; `handshake` may throw. */
function fakeTls(secured: string[], handshake?: (host: string) => void) {
  return async (socket: Duplex, host: string): Promise<Duplex> => {
    handshake?.(host)
    secured.push(host)
    return socket
  }
}

/** The error of a refused connection. */
export function refused(to: Target): Error {
  const error = new Error(`connect ECONNREFUSED ${to.ip}:${to.port}`)
  return Object.assign(error, { code: 'ECONNREFUSED' })
}

/** Stops replying from the first such command on. */
export const silentFrom = (verb: string) => (_: string, session: MxSession) =>
  session.lines.some(line => line.startsWith(verb)) ? null : undefined

/** Replies 221 to QUIT and leaves the connection open. */
export function stay(session: MxSession): Promise<never> {
  session.say('221 2.0.0 Bye')
  return new Promise(() => {})
}

/** The default reply, of a server that accepts everything; PIPELINING is offered. */
export function politeReply(line: string): string | typeof HANG_UP {
  const verb = line.split(/[ :]/, 1)[0]?.toUpperCase() ?? ''
  return POLITE[verb] ?? '500 5.5.2 Error: command not recognized'
}

const POLITE: Record<string, string> = {
  EHLO: '250-mx.example.org\n250-PIPELINING\n250 ENHANCEDSTATUSCODES',
  HELO: '250 mx.example.org',
  MAIL: '250 2.1.0 Ok',
  RCPT: '250 2.1.5 Ok',
  RSET: '250 2.0.0 Ok',
  NOOP: '250 2.0.0 Ok',
  QUIT: '221 2.0.0 Bye',
}

type Step = { readonly side: 'S' | 'C'; readonly text: string; readonly number: number }

function readDialogue(dialogue: string): Step[] {
  const text = dialogue.includes('\n') ? dialogue : readFileSync(join(SESSIONS, dialogue), 'utf8')
  return text.split(/\r?\n/).flatMap((line, index): Step[] => {
    const match = /^\s*([SC]):(?: (.*))?$/.exec(line)
    if (match) return [{ side: match[1] as 'S' | 'C', text: match[2] ?? '', number: index + 1 }]
    if (/^\s*(#|$)/.test(line)) return []
    throw new Error(`Line ${index + 1} of the dialogue begins with neither "S:" nor "C:": ${line}`)
  })
}

async function play(steps: readonly Step[], lines: LineQueue, ends: Ends): Promise<void> {
  for (const step of steps) {
    if (step.side === 'C') {
      const actual = await lines.next()
      if (actual === null)
        throw new Error(`The client left before line ${step.number}: ${step.text}`)
      if (actual !== step.text) throw differs(step, actual)
    } else {
      const early = lines.waiting()
      if (early !== undefined) throw differs(step, early)
      write(ends, step.text)
    }
  }
}

const differs = ({ side, text, number }: Step, actual: string) =>
  new Error(
    side === 'C'
      ? `Line ${number} of the dialogue differs.\n  expected: C: ${text}\n  actual:   C: ${actual}`
      : `The client sent a line too early, at line ${number} of the dialogue.\n  expected: S: ${text}\n  actual:   C: ${actual}`,
  )

type Ends = { readonly client: Duplex; readonly server: Duplex }

function write({ client, server }: Ends, text: string): void {
  if (text === '<close>') server.end()
  else if (text === '<reset>') client.destroy(resetError())
  else if (!server.writableEnded && !server.destroyed) server.write(`${text}\r\n`)
}

/** The error of a socket whose peer sent RST. */
const resetError = () => Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' })

function openSession(to: Target, number: number, ends: Ends): MxSession {
  const session: MxSession = {
    to,
    number,
    lines: [],
    closed: false,
    say: text => {
      for (const line of text.split('\n')) write(ends, line)
    },
    hangUp: () => write(ends, '<close>'),
    reset: () => write(ends, '<reset>'),
  }
  const close = () => {
    session.closed = true
  }
  ends.server.on('end', close).on('finish', close).on('close', close)
  return session
}

async function serve(
  server: Duplex,
  session: MxSession,
  greeting: MxSays,
  answer: MxScript['answer'],
): Promise<void> {
  const lines = new LineQueue(server)
  const send = (what: MxSays) => {
    if (what === HANG_UP) session.hangUp()
    else if (typeof what === 'string') session.say(what)
  }
  send(greeting)
  for (let line = await lines.next(); line !== null; line = await lines.next()) {
    session.lines.push(line)
    const reply = await answer?.(line, session)
    send(reply === undefined ? politeReply(line) : reply)
    if (reply === undefined && /^QUIT/i.test(line)) session.hangUp()
  }
  session.hangUp()
}

/** The lines that a client sends, in order; only CRLF ends a line. */
class LineQueue {
  readonly #lines: string[] = []
  #rest = ''
  #ended = false
  #wake: () => void = () => {}

  constructor(server: Duplex) {
    server.setEncoding('utf8')
    server.on('data', (text: string) => this.#push(text))
    for (const event of ['end', 'close', 'error']) {
      server.on(event, () => {
        this.#ended = true
        this.#wake()
      })
    }
  }

  /** Returns the next line; null when the client has left. */
  async next(): Promise<string | null> {
    while (this.#lines.length === 0 && !this.#ended) {
      await new Promise<void>(resolve => {
        this.#wake = resolve
      })
    }
    return this.#lines.shift() ?? null
  }

  /** Returns the next received line without removing it. */
  waiting(): string | undefined {
    return this.#lines[0]
  }

  #push(text: string): void {
    const lines = (this.#rest + text).split('\r\n')
    this.#rest = lines.pop() ?? ''
    this.#lines.push(...lines)
    this.#wake()
  }
}
