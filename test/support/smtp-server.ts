import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'
import { onTestFinished } from 'vitest'
import { type CertificateKind, certificateOf } from './certificate.ts'

export type Taken = {
  readonly from: string
  readonly to: readonly string[]
  /** Header and body, as received. */
  readonly source: string
  readonly isSecure: boolean
  readonly user: string | null
}

export type MailServer = {
  readonly port: number
  readonly taken: readonly Taken[]
  /** Credentials offered by clients, `name:password`. */
  readonly offered: readonly string[]
}

type Options = {
  readonly certificate?: CertificateKind
  /** Use implicit TLS. */
  readonly isTls?: boolean
  /** Required credentials, `name:password`; without them it accepts mail from every client. */
  readonly login?: string
  /** Neither offer nor accept STARTTLS. */
  readonly isPlain?: boolean
  readonly more?: SMTPServerOptions
}

/** Starts a real mail server on 127.0.0.1 that stores its mail; closed after the test. */
export async function startMailServer(o: Options = {}): Promise<MailServer> {
  const taken: Taken[] = []
  const offered: string[] = []
  const server = new SMTPServer({
    secure: o.isTls ?? false,
    logger: false,
    authOptional: o.login === undefined,
    ...certificateOf(o.certificate ?? 'right', 'mail.example', '127.0.0.1'),
    ...(o.isPlain ? { hideSTARTTLS: true, disabledCommands: ['STARTTLS'] } : {}),
    // Reveals clients that send credentials without encryption.
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
  server.on('error', () => {}) // Clients that reject the certificate cause errors.
  const listening = server.listen(0, '127.0.0.1')
  await once(listening, 'listening')
  onTestFinished(() => new Promise<void>(resolve => void server.close(() => resolve())))
  return { port: (listening.address() as AddressInfo).port, taken, offered }
}

/** Encoded as in AUTH PLAIN (RFC 4616). */
const asSent = (...login: readonly unknown[]) =>
  Buffer.from(`\0${login.join('\0')}`).toString('base64')
