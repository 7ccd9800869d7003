import type { Transporter } from 'nodemailer'
import { SECOND } from '../platform/clock.ts'
import { EvError, errorMessage } from '../platform/error.ts'
import { isLoopbackHost } from '../platform/ip.ts'
import { sanitizeText } from '../platform/text.ts'
import type { Mail, Notify } from './mail-transport.ts'

export type SmtpDeps = {
  /** `smtp://` or `smtps://`, with username and password if the server requires them. */
  readonly url: string
  /** The bare email address. */
  readonly from: string
  /** PEM of the only trusted CA; the default CAs if omitted. */
  readonly ca?: string
  readonly timeouts?: Partial<typeof TIMEOUTS>
}

/** Alerts are not urgent: a server slower than this is retried later. */
const TIMEOUTS = {
  connectMs: 10 * SECOND,
  greetingMs: 10 * SECOND,
  /** Idle time of the connection. */
  socketMs: 30 * SECOND,
  /** For the whole mail: a server could send its replies one byte at a time. */
  sendMs: 120 * SECOND,
}

/**
 * Sends mail through an SMTP server, with one connection per mail because there are few. The
 * certificate is verified for both implicit TLS and STARTTLS.
 */
export function createSmtpTransport({ url, from, ca, timeouts }: SmtpDeps): Notify {
  const server = parseMailServer(url)
  const limits = { ...TIMEOUTS, ...timeouts }
  const closing = new AbortController()
  let transport: Promise<Transporter> | null = null
  return {
    async send(mail) {
      transport ??= createTransporter(server, limits, ca)
      const signal = AbortSignal.any([closing.signal, AbortSignal.timeout(limits.sendMs)])
      try {
        await (await transport).sendMail({ ...toMessage(mail, from), signal })
      } catch (error) {
        // Without the cause: the server's reply to a login may repeat the password.
        throw new EvError('io', describeFault(error, server))
      }
    },
    close() {
      closing.abort()
    },
  }
}

/** Loaded with the first alert: on most days there is none. */
async function createTransporter(
  server: MailServer,
  limits: typeof TIMEOUTS,
  ca: string | undefined,
) {
  const { createTransport } = await import('nodemailer')
  return createTransport({
    host: server.host,
    port: server.port,
    secure: server.isTls,
    requireTLS: server.tls === 'demanded',
    ignoreTLS: server.tls === 'never',
    ...(server.login === null ? {} : { auth: server.login }),
    tls: { rejectUnauthorized: true, minVersion: 'TLSv1.2', ...(ca === undefined ? {} : { ca }) },
    connectionTimeout: limits.connectMs,
    dnsTimeout: limits.connectMs,
    greetingTimeout: limits.greetingMs,
    socketTimeout: limits.socketMs,
    // Contents are text only, never paths or URLs to load.
    disableFileAccess: true,
    disableUrlAccess: true,
  })
}

/** Addresses are objects, so that nothing in them is parsed as a list or a display name. */
const toMessage = ({ to, subject, text, messageId }: Mail, from: string) => ({
  from: { name: 'ev', address: from },
  to: { name: '', address: to },
  subject,
  text,
  ...(messageId === undefined ? {} : { messageId }),
  // RFC 3834 §5: suppresses out-of-office replies.
  headers: { 'Auto-Submitted': 'auto-generated' },
})

/** Returns why a mail server rejected a mail, without the username and the password. */
function describeFault(error: unknown, { host, port }: Pick<MailServer, 'host' | 'port'>): string {
  const { code = '', responseCode } = error as { code?: string; responseCode?: number }
  const server = `The mail server ${host.includes(':') ? `[${host}]` : host}:${port}`
  const status = responseCode === undefined ? '' : ` (${responseCode})`
  if (code === 'EAUTH') return `${server} rejected the username and password${status}.`
  return `${server} did not accept the mail: ${sanitizeText(errorMessage(error))}`
}

/** Connection settings of a mail server. */
type MailServer = {
  readonly host: string
  readonly port: number
  /** Implicit TLS. */
  readonly isTls: boolean
  /** When STARTTLS is used. */
  readonly tls: 'demanded' | 'offered' | 'never'
  readonly login: { readonly user: string; readonly pass: string } | null
}

/** RFC 5321 §4.5.4.2. */
const RELAY_PORT = 25
/** RFC 6409 §3.1. */
const SUBMISSION_PORT = 587
/** RFC 8314 §3.3. */
const SUBMISSIONS_PORT = 465

/**
 * Parses the URL of a mail server, which the settings have validated. A password is sent over TLS
 * only. Connections to this machine use no TLS: they cannot be intercepted, and such servers rarely
 * have a certificate for `localhost`.
 */
export function parseMailServer(text: string): MailServer {
  const url = new URL(text)
  const isTls = url.protocol === 'smtps:'
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  const login =
    url.username === ''
      ? null
      : { user: decodeURIComponent(url.username), pass: decodeURIComponent(url.password) }
  const defaultPort = isTls ? SUBMISSIONS_PORT : login === null ? RELAY_PORT : SUBMISSION_PORT
  const port = url.port === '' ? defaultPort : Number(url.port)
  const tls = login !== null ? 'demanded' : isLoopbackHost(host) ? 'never' : 'offered'
  return { host, port, isTls, tls, login }
}
