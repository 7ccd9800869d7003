import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Duplex, duplexPair } from 'node:stream'
import type { Dial, Target } from '../../src/engine/smtp/dial.ts'

/** A dialogue being played: the client's end, and a promise that tells whether all lines were spoken as written. */
export type PlayedSession = { readonly socket: Duplex; readonly done: Promise<void> }

const SESSIONS = join(import.meta.dirname, '../../fixtures/session')

/**
 * Plays the server of a dialogue: text of `S: …` and `C: …` lines, or the name of a file in fixtures/session.
 * `done` is rejected at the first line that differs, at a line spoken before its turn, and when the client leaves too soon.
 * `S: <close>` hangs up and `S: <reset>` breaks the connection; `#` begins a comment. A client that
 * waits for what the dialogue does not hold waits for ever: such a test ends by its time limit.
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

/** A dial that plays one dialogue after another, one for each connection; a further connection is refused. */
export function playedMx(...dialogues: readonly string[]) {
  const secured: string[] = []
  const dialled: Target[] = []
  const played: Promise<void>[] = []
  return {
    dialled,
    /** Settles when all connections made so far were spoken to their end. */
    done: () => Promise.all(played).then(() => undefined),
    async connect(to: Target, _signal?: AbortSignal): Promise<Duplex> {
      const dialogue = dialogues[dialled.length]
      dialled.push(to)
      if (dialogue === undefined) throw refused(to)
      const session = playSession(dialogue)
      played.push(session.done)
      return session.socket
    },
    /** Names of hosts to which TLS was put on; the talk goes on in clear. */
    secured,
    secure: pretendTls(secured),
  } satisfies Dial & Record<string, unknown>
}

/** What a scripted server says to a line: text of one or several replies (`\n` between lines), nothing, a hang-up, or (undefined) what any polite server says. */
export type MxSays = string | null | typeof HANG_UP | undefined

/** As a reply: the server ends the connection. */
export const HANG_UP = Symbol('hang up')

/** One connection to a scripted server. */
export type MxSession = {
  readonly to: Target
  /** Number of the connection at this server, from 0. */
  readonly number: number
  /** All lines the client sent, in order. */
  readonly lines: string[]
  /** Says something unasked. */
  say(text: string): void
  hangUp(): void
  /** Breaks the connection, as a RST does. */
  reset(): void
  /** Whether either side has ended the connection. */
  closed: boolean
}

export type MxScript = {
  /** The greeting; null keeps silent. */
  greeting?: string | null | ((session: MxSession) => MxSays)
  /** The reply to each line. */
  answer?: (line: string, session: MxSession) => MxSays | Promise<MxSays>
  /** Called before each connection; may throw to refuse it. */
  connect?: (to: Target) => void
  /** Called in place of the TLS handshake; may throw to let it fail. */
  secure?: (host: string) => void
}

/** A dial to servers that answer as `script` says; `sessions` and `dialled` remember what came. */
export function scriptedMx(script: MxScript | NonNullable<MxScript['answer']>) {
  const {
    greeting = GREETING,
    answer,
    connect,
    secure,
  }: MxScript = typeof script === 'function' ? { answer: script } : script
  const dialled: Target[] = []
  const sessions: MxSession[] = []
  const secured: string[] = []
  return {
    dialled,
    sessions,
    /** All lines of all sessions, in order of sessions. */
    lines: () => sessions.flatMap(session => session.lines),
    async connect(to: Target, signal?: AbortSignal): Promise<Duplex> {
      signal?.throwIfAborted()
      dialled.push(to)
      connect?.(to)
      const [socket, server] = duplexPair()
      const session = openSession(to, sessions.length, { client: socket, server })
      sessions.push(session)
      const hello = typeof greeting === 'function' ? greeting(session) : greeting
      void serve(server, session, hello === undefined ? GREETING : hello, answer)
      return socket
    },
    /** Names of hosts to which TLS was put on; the talk goes on in clear. */
    secured,
    secure: pretendTls(secured, secure),
  } satisfies Dial & Record<string, unknown>
}

/** Fails what opens it: for a test in which no server is asked. */
export const closedDial: Dial = {
  connect: to => Promise.reject(new Error(`${to.ip} was dialled`)),
  secure: () => Promise.reject(new Error('TLS was asked for')),
}

/** Opens no connection and refuses none, until the signal aborts. */
export const silentDial: Dial = {
  connect: (_, signal) =>
    new Promise((_, reject) =>
      signal.addEventListener('abort', () => reject(new Error('given up')), { once: true }),
    ),
  secure: async socket => socket,
}

/** STARTTLS without TLS; `handshake` may throw. */
function pretendTls(secured: string[], handshake?: (host: string) => void) {
  return async (socket: Duplex, host: string): Promise<Duplex> => {
    handshake?.(host)
    secured.push(host)
    return socket
  }
}

/** The error of a dial that found nobody listening. */
export function refused(to: Target): Error {
  const error = new Error(`connect ECONNREFUSED ${to.ip}:${to.port}`)
  return Object.assign(error, { code: 'ECONNREFUSED' })
}

/** Says nothing to the first of these commands, nor to any after it. */
export const silentFrom = (verb: string) => (_: string, session: MxSession) =>
  session.lines.some(line => line.startsWith(verb)) ? null : undefined

/** Says 221 to QUIT and leaves the connection open. */
export function stay(session: MxSession): Promise<never> {
  session.say('221 2.0.0 Bye')
  return new Promise(() => {})
}

/** What a server without opinions says; PIPELINING is offered. */
export function politeReply(line: string): string | typeof HANG_UP {
  const verb = line.split(/[ :]/, 1)[0]?.toUpperCase() ?? ''
  return POLITE[verb] ?? '500 5.5.2 Error: command not recognized'
}

const GREETING = '220 mx.example.org ESMTP'
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
      const spoken = await lines.next()
      if (spoken === null)
        throw new Error(`The client left before line ${step.number}: ${step.text}`)
      if (spoken !== step.text) throw differs(step, spoken)
    } else {
      const early = lines.waiting()
      if (early !== undefined) throw differs(step, early)
      speak(ends, step.text)
    }
  }
}

const differs = ({ side, text, number }: Step, spoken: string) =>
  new Error(
    side === 'C'
      ? `Line ${number} of the dialogue differs.\n  expected: C: ${text}\n  spoken:   C: ${spoken}`
      : `The client spoke before its turn at line ${number} of the dialogue.\n  due:    S: ${text}\n  spoken: C: ${spoken}`,
  )

type Ends = { readonly client: Duplex; readonly server: Duplex }

function speak({ client, server }: Ends, text: string): void {
  if (text === '<close>') server.end()
  else if (text === '<reset>') client.destroy(brokenOff())
  else if (!server.writableEnded && !server.destroyed) server.write(`${text}\r\n`)
}

/** What a socket says when the other side sent RST. */
const brokenOff = () => Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' })

function openSession(to: Target, number: number, ends: Ends): MxSession {
  const session: MxSession = {
    to,
    number,
    lines: [],
    closed: false,
    say: text => {
      for (const line of text.split('\n')) speak(ends, line)
    },
    hangUp: () => speak(ends, '<close>'),
    reset: () => speak(ends, '<reset>'),
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
  const says = (what: MxSays) => {
    if (what === HANG_UP) session.hangUp()
    else if (typeof what === 'string') session.say(what)
  }
  says(greeting)
  for (let line = await lines.next(); line !== null; line = await lines.next()) {
    session.lines.push(line)
    const said = await answer?.(line, session)
    says(said === undefined ? politeReply(line) : said)
    if (said === undefined && /^QUIT/i.test(line)) session.hangUp()
  }
  session.hangUp()
}

/** The lines a client sends, in order; what is not ended by CRLF is no line. */
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

  /** The next line; null when the client has left. */
  async next(): Promise<string | null> {
    while (this.#lines.length === 0 && !this.#ended) {
      await new Promise<void>(resolve => {
        this.#wake = resolve
      })
    }
    return this.#lines.shift() ?? null
  }

  /** A line that has come but was not taken. */
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
