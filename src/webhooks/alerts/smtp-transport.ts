import type { Transporter } from 'nodemailer'
import { SECOND } from '../../platform/clock.ts'
import { EvError } from '../../platform/error.ts'
import type { Mail, Notify } from './mail-transport.ts'
import { faultText } from './smtp-error.ts'
import { type MailServer, parseMailServer } from './smtp-server.ts'

export type SmtpDeps = {
  /** `smtp://` or `smtps://`, with a name and a password where the server asks for them. */
  readonly url: string
  /** The bare address. */
  readonly from: string
  /** PEM of the only authority that is trusted; the well-known ones when left out. */
  readonly ca?: string
  readonly timeouts?: Partial<typeof TIMEOUTS>
}

/** Nobody waits for a notice, and a server that is slower than this is tried again later. */
const TIMEOUTS = {
  connectMs: 10 * SECOND,
  greetingMs: 10 * SECOND,
  /** Without a sign from the server. */
  socketMs: 30 * SECOND,
  /** For all of it: a server might give its signs one byte at a time. */
  sendMs: 120 * SECOND,
}

/** Hands mail to a server, one connection for each: there are few. Its certificate is checked, however TLS begins. */
export function smtpNotify({ url, from, ca, timeouts }: SmtpDeps): Notify {
  const server = parseMailServer(url)
  const limits = { ...TIMEOUTS, ...timeouts }
  const closing = new AbortController()
  let transport: Promise<Transporter> | null = null
  return {
    async send(mail) {
      transport ??= transportTo(server, limits, ca)
      const signal = AbortSignal.any([closing.signal, AbortSignal.timeout(limits.sendMs)])
      try {
        await (await transport).sendMail({ ...toMessage(mail, from), signal })
      } catch (error) {
        // Without its cause: what a server says to a password may repeat it.
        throw new EvError('io', faultText(error, server))
      }
    },
    close() {
      closing.abort()
    },
  }
}

/** Loaded when the first notice goes out: most days there is none. */
async function transportTo(server: MailServer, limits: typeof TIMEOUTS, ca: string | undefined) {
  const { createTransport } = await import('nodemailer')
  return createTransport({
    ...{ host: server.host, port: server.port, secure: server.isTls },
    ...{ requireTLS: server.tls === 'demanded', ignoreTLS: server.tls === 'never' },
    ...(server.login === null ? {} : { auth: server.login }),
    tls: { rejectUnauthorized: true, minVersion: 'TLSv1.2', ...(ca === undefined ? {} : { ca }) },
    ...{ connectionTimeout: limits.connectMs, dnsTimeout: limits.connectMs },
    ...{ greetingTimeout: limits.greetingMs, socketTimeout: limits.socketMs },
    // Texts of a mail are texts, never names of files or addresses to fetch.
    ...{ disableFileAccess: true, disableUrlAccess: true },
  })
}

/** Addresses as objects, as nothing in them is to be read as a list or a name. */
const toMessage = ({ to, subject, text }: Mail, from: string) => ({
  from: { name: 'ev', address: from },
  to: { name: '', address: to },
  ...{ subject, text },
  // RFC 3834 §5: nobody's holiday is told to us.
  headers: { 'Auto-Submitted': 'auto-generated' },
})
