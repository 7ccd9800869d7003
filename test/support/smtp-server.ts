import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'
import { onTestFinished } from 'vitest'
import { type CertificateKind, certificateOf } from './certificate.ts'

export type Taken = {
  readonly from: string
  readonly to: readonly string[]
  /** Head and body, as they came. */
  readonly source: string
  readonly isSecure: boolean
  readonly user: string | null
}

export type MailServer = {
  readonly port: number
  readonly taken: readonly Taken[]
  /** Names and passwords that were offered, `name:password`. */
  readonly offered: readonly string[]
}

type Options = {
  readonly certificate?: CertificateKind
  /** TLS from the first byte. */
  readonly isTls?: boolean
  /** `name:password` that it asks for; it takes mail from everybody where there is none. */
  readonly login?: string
  /** It neither offers nor takes STARTTLS. */
  readonly isPlain?: boolean
  readonly more?: SMTPServerOptions
}

/** A real mail server on 127.0.0.1 that keeps what it takes, and goes with the test. */
export async function startMailServer(o: Options = {}): Promise<MailServer> {
  const taken: Taken[] = []
  const offered: string[] = []
  const server = new SMTPServer({
    ...{ secure: o.isTls ?? false, logger: false, authOptional: o.login === undefined },
    ...certificateOf(o.certificate ?? 'right', 'mail.example', '127.0.0.1'),
    ...(o.isPlain ? { hideSTARTTLS: true, disabledCommands: ['STARTTLS'] } : {}),
    // A client that would send it in the clear is to be seen.
    allowInsecureAuth: true,
    onAuth({ username, password }, _, callback) {
      offered.push(`${username}:${password}`)
      if (offered.at(-1) === o.login) callback(null, { user: username })
      else
        callback(new Error(`no such login ${username}:${password} ${asSent(username, password)}`))
    },
    onData(stream, { envelope, secure, user }, callback) {
      void text(stream).then(source => {
        const from = envelope.mailFrom === false ? '' : envelope.mailFrom.address
        const to = envelope.rcptTo.map(({ address }) => address)
        taken.push({ from, to, source, isSecure: secure, user: (user as string) ?? null })
        callback(null)
      })
    },
    ...o.more,
  })
  server.on('error', () => {}) // A client that refuses its certificate is none.
  const listening = server.listen(0, '127.0.0.1')
  await once(listening, 'listening')
  onTestFinished(() => new Promise<void>(resolve => void server.close(() => resolve())))
  return { port: (listening.address() as AddressInfo).port, taken, offered }
}

/** As AUTH PLAIN has it (RFC 4616). */
const asSent = (...login: readonly unknown[]) =>
  Buffer.from(`\0${login.join('\0')}`).toString('base64')
