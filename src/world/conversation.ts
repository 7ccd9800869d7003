import type { Duplex } from 'node:stream'
import { StringDecoder } from 'node:string_decoder'
import { type SecureContext, TLSSocket } from 'node:tls'
import type { Moment, Rule } from './rule.ts'
import type { ScriptedHost } from './scripted-host.ts'

/** What a line may hold at most (RFC 5321 §4.5.3.1.4 says 512; Postfix takes 2,048). */
const LINE_MAX = 2_048

/** A socket as a mail server sees it: near or far. */
export type Line = Duplex & { resetAndDestroy(): unknown }

/**
 * The server's side of one SMTP conversation: the grammar of RFC 5321 here, what to say in the
 * rules of the host. Replies to commands that came together leave together (RFC 2920 §3.2).
 */
export class Conversation implements Moment {
  readonly client: string
  readonly connection: number
  from = ''
  to = ''
  inTransaction = 0
  inConnection = 0
  secure = false
  times = 0
  sinceMs = 0
  readonly #host: ScriptedHost
  readonly #raw: Line
  #socket: Duplex
  #decoder = new StringDecoder('utf8')
  #unread = ''
  #unsaid = ''
  #stage: 'unmet' | 'greeted' | 'mail' | 'refused' = 'unmet'
  #pipelining = false
  #utf8 = false
  /** The server talks or thinks; what comes waits. */
  #busy = false
  #deaf = false
  #greeted = false
  #timer: NodeJS.Timeout | undefined

  constructor(host: ScriptedHost, socket: Line, about: { client: string; connection: number }) {
    this.#host = host
    this.#raw = socket
    this.#socket = socket
    this.client = about.client
    this.connection = about.connection
    host.tally.pregreet += socket.readableLength
    this.#listen()
    this.#greet()
  }

  get host(): string {
    return this.#host.name
  }

  get sessions(): number {
    return this.#host.tally.sessionsNow
  }

  /** Ends it at once. */
  destroy(): void {
    clearTimeout(this.#timer)
    this.#deaf = true
    this.#socket.destroy()
    this.#raw.destroy()
  }

  readonly #onData = (bytes: Buffer) => this.#hear(bytes)
  readonly #onEnd = () => this.#socket.end()
  readonly #onGone = () => this.destroy()

  #listen(): void {
    // No setEncoding: TLS must find bytes where it takes over.
    this.#decoder = new StringDecoder('utf8')
    this.#socket.on('data', this.#onData).on('end', this.#onEnd)
    this.#socket.on('error', this.#onGone).on('close', this.#onGone)
  }

  #greet(): void {
    const rule = this.#host.rules.find('CONNECT', this)
    const reply = rule === undefined ? `220 ${this.host} ESMTP` : rule.reply
    if (reply !== undefined && !reply.startsWith('2')) this.#stage = 'refused'
    this.#obey('CONNECT', rule, reply)
    this.#flush()
  }

  #hear(bytes: Buffer): void {
    if (!this.#greeted) this.#host.tally.pregreet += bytes.length
    if (this.#deaf) return
    this.#unread += this.#decoder.write(bytes)
    if (!this.#busy) this.#work()
  }

  #work(): void {
    let start = 0
    while (!this.#busy && !this.#deaf) {
      const end = this.#unread.indexOf('\n', start)
      if (end === -1) break
      const line = this.#unread.slice(start, end)
      start = end + 1
      this.#more = start < this.#unread.length
      if (line.length <= LINE_MAX && line.endsWith('\r')) this.#command(line.slice(0, -1))
      else this.#badLine()
    }
    this.#unread = this.#unread.slice(start)
    if (this.#unread.length > LINE_MAX && !this.#busy) {
      this.#unread = ''
      this.#badLine()
    }
    this.#flush()
  }
  /** Whether the client sent more behind the command at hand. */
  #more = false

  #badLine(): void {
    this.#host.tally.badLines += 1
    this.#say('500 5.5.2 Error: line too long or not ended by CRLF')
  }

  #command(line: string): void {
    const verb = verbOf(line)
    this.#host.tally.command(verb)
    if (this.#more && (!this.#pipelining || MUST_BE_LAST.has(verb))) {
      this.#host.tally.outOfTurn += 1
      if (this.#host.temper.strict === true) {
        this.#hangUp('554 5.5.0 SMTP synchronization error')
        return
      }
    }
    const fault = this.#faultOf(verb, line)
    if (fault !== undefined) {
      this.#say(fault)
      return
    }
    const rule = this.#host.rules.find(verb, this)
    const reply = rule === undefined ? this.#politeReply(verb) : rule.reply
    if (reply?.startsWith('2') === true) this.#advance(verb)
    this.#obey(verb, rule, reply)
  }

  /** What is wrong with a command before anybody has an opinion of it; reads its arguments. */
  #faultOf(verb: string, line: string): string | undefined {
    if (this.#stage === 'refused')
      return verb === 'QUIT' ? undefined : '503 5.5.1 Error: access denied'
    switch (verb) {
      case 'EHLO':
      case 'HELO':
        return /^\S+ +\S+$/.test(line) ? undefined : `501 Syntax: ${verb} hostname`
      case 'STARTTLS':
        if (this.#host.temper.starttls !== true || this.secure)
          return '502 5.5.1 Error: command not implemented'
        return line.length === 8 ? undefined : '501 5.5.4 Syntax: STARTTLS'
      case 'MAIL':
        return this.#readMail(line)
      case 'RCPT':
        return this.#readRcpt(line)
      default:
        return undefined
    }
  }

  #readMail(line: string): string | undefined {
    if (this.#stage === 'unmet') return '503 5.5.1 Error: send HELO/EHLO first'
    if (this.#stage === 'mail') return '503 5.5.1 Error: nested MAIL command'
    const match = /^MAIL FROM: ?<(.*)>((?: [!-~]+)*)$/i.exec(line)
    if (match === null) return '501 5.5.4 Syntax: MAIL FROM:<address>'
    this.#utf8 = / SMTPUTF8\b/i.test(match[2] ?? '')
    if (this.#utf8 && !this.#host.extensions.includes('SMTPUTF8')) {
      return '555 5.5.4 Unsupported option: SMTPUTF8'
    }
    this.from = match[1] ?? ''
    return undefined
  }

  #readRcpt(line: string): string | undefined {
    if (this.#stage !== 'mail') return '503 5.5.1 Error: need MAIL command'
    const match = /^RCPT TO: ?<(.+)>((?: [!-~]+)*)$/i.exec(line)
    const to = match?.[1]
    if (to === undefined) return '501 5.5.4 Syntax: RCPT TO:<address>'
    this.to = to
    this.inTransaction += 1
    this.inConnection += 1
    this.#host.tally.recipient(to, this.inConnection, this.inTransaction)
    if (!this.#utf8 && NOT_ASCII.test(to))
      return '553 5.6.7 Error: SMTPUTF8 needed for this address'
    if (this.#host.rules.remembers) Object.assign(this, this.#host.remember(this))
    return undefined
  }

  #politeReply(verb: string): string {
    if (verb !== 'EHLO') return POLITE[verb] ?? '500 5.5.2 Error: command not recognized'
    const starttls = this.#host.temper.starttls === true && !this.secure ? ['STARTTLS'] : []
    const lines = ['{host}', ...this.#host.extensions, ...starttls]
    return lines
      .map((line, index) => `250${index < lines.length - 1 ? '-' : ' '}${line}`)
      .join('\n')
  }

  /** A command was granted: where the conversation stands now. */
  #advance(verb: string): void {
    if (verb === 'MAIL') {
      this.#stage = 'mail'
      this.inTransaction = 0
      this.#host.tally.transactions += 1
    } else if (verb === 'EHLO' || verb === 'HELO') {
      this.#stage = 'greeted'
      this.#pipelining = verb === 'EHLO' && this.#host.extensions.includes('PIPELINING')
    } else if (verb === 'RSET' && this.#stage === 'mail') {
      this.#stage = 'greeted'
    } else if (verb === 'STARTTLS') {
      this.#stage = 'unmet'
      this.#pipelining = false
    }
  }

  #obey(verb: string, rule: Rule | undefined, reply: string | undefined): void {
    const waitMs = (rule?.afterMs ?? 0) + (this.#host.temper.replyMs ?? 0)
    if (waitMs === 0) {
      this.#utter(verb, rule, reply)
      return
    }
    this.#flush()
    this.#pause(waitMs, () => {
      this.#busy = false
      this.#utter(verb, rule, reply)
      this.#work()
    })
  }

  #pause(ms: number, step: () => void): void {
    this.#busy = true
    this.#timer = setTimeout(step, ms)
  }

  #utter(verb: string, rule: Rule | undefined, reply: string | undefined): void {
    if (rule?.raw !== undefined) this.#bytes(Buffer.from(rule.raw, 'latin1'))
    if (reply !== undefined) this.#say(reply)
    if (verb === 'CONNECT') this.#greeted = reply !== undefined
    if (rule?.endless !== undefined)
      this.#goOn(
        `${rule.endless}
`.repeat(100),
      )
    else if (rule?.end === 'hang') this.#deaf = true
    else if (rule?.end === 'reset') this.#reset()
    else if (rule?.end === 'close' || verb === 'QUIT' || reply?.startsWith('421') === true) {
      this.#hangUp()
    } else if (verb === 'STARTTLS' && reply?.startsWith('2') === true) this.#encrypt()
  }

  #say(reply: string): void {
    const text = reply.includes('{') ? this.#filled(reply) : reply
    this.#unsaid += text.includes('\n') ? `${text.replaceAll('\n', '\r\n')}\r\n` : `${text}\r\n`
  }

  #filled(reply: string): string {
    return reply.replace(
      /\{(to|from|host|client)\}/g,
      (_, name: 'to' | 'from' | 'host' | 'client') => this[name],
    )
  }

  #bytes(bytes: Buffer): void {
    this.#flush()
    this.#socket.write(bytes)
  }

  #flush(): void {
    const text = this.#unsaid
    if (text === '' || this.#socket.writableEnded) return
    this.#unsaid = ''
    if (this.#host.temper.dripMs === undefined) this.#socket.write(text)
    else this.#drip(Buffer.from(text), this.#host.temper.dripMs)
  }

  #drip(bytes: Buffer, everyMs: number): void {
    const last = this.#deaf
    const next = (index: number) => {
      this.#socket.write(bytes.subarray(index, index + 1))
      this.#busy = false
      if (index + 1 < bytes.length) this.#pause(everyMs, () => next(index + 1))
      else if (last) this.#socket.end()
      else this.#work()
    }
    this.#pause(everyMs, () => next(0))
  }

  /** Talks for ever, as fast as the client reads. */
  #goOn(text: string): void {
    this.#flush()
    this.#deaf = true
    const more = () => {
      let room = true
      while (room && !this.#socket.destroyed) room = this.#socket.write(text)
      if (!this.#socket.destroyed) this.#socket.once('drain', more)
    }
    more()
  }

  #hangUp(lastWord?: string): void {
    if (lastWord !== undefined) this.#say(lastWord)
    this.#deaf = true
    this.#flush()
    if (this.#host.temper.dripMs === undefined) this.#socket.end()
  }

  #reset(): void {
    this.#deaf = true
    this.#raw.resetAndDestroy()
  }

  /** RFC 3207 §4.2: all that was said before is forgotten, and what was sent behind STARTTLS is thrown away. */
  #encrypt(): void {
    this.#flush()
    this.#unread = ''
    this.#raw.off('data', this.#onData).off('end', this.#onEnd)
    this.#socket = upgraded(this.#raw, this.#host.secureContext())
    this.secure = true
    this.#host.tally.tlsSessions += 1
    this.#listen()
  }
}

const upgraded = (raw: Line, secureContext: SecureContext) =>
  new TLSSocket(raw, { isServer: true, secureContext })

/** Commands that end a group (RFC 2920 §3.1). */
const MUST_BE_LAST = new Set(['EHLO', 'HELO', 'STARTTLS', 'QUIT', 'NOOP', 'DATA', 'VRFY', 'EXPN'])

const POLITE: Readonly<Record<string, string>> = {
  HELO: '250 {host}',
  STARTTLS: '220 2.0.0 Ready to start TLS',
  MAIL: '250 2.1.0 Ok',
  RCPT: '250 2.1.5 Ok',
  RSET: '250 2.0.0 Ok',
  NOOP: '250 2.0.0 Ok',
  QUIT: '221 2.0.0 Bye',
}

const NOT_ASCII = /[^ -~]/

function verbOf(line: string): string {
  const end = line.search(/[ :]/)
  return (end === -1 ? line : line.slice(0, end)).slice(0, 20).toUpperCase()
}
