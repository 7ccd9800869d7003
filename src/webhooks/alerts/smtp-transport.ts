import type { Transporter } from 'nodemailer'
import { SECOND } from '../../platform/clock.ts'
import { EvError, errorMessage } from '../../platform/error.ts'
import { inRanges } from '../../platform/ip.ts'
import { sanitizeText } from '../../platform/text.ts'
import type { Mail, Notify } from './mail-transport.ts'

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

/** Why a mail server did not take a mail, in a sentence that holds neither the name nor the password for it. */
function faultText(error: unknown, { host, port }: Pick<MailServer, 'host' | 'port'>): string {
  const { code = '', responseCode } = error as { code?: string; responseCode?: number }
  const server = `The mail server ${host.includes(':') ? `[${host}]` : host}:${port}`
  const status = responseCode === undefined ? '' : ` (${responseCode})`
  if (code === 'EAUTH') return `${server} does not take the name and the password${status}.`
  return `${server} did not take it: ${sanitizeText(errorMessage(error))}`
}

/** A server that takes mail of ours, and how we speak with it. */
type MailServer = {
  readonly host: string
  readonly port: number
  /** TLS from the first byte. */
  readonly isTls: boolean
  /** STARTTLS: whether it is taken where it is offered. */
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
 * Reads the URL of a mail server, which the settings have checked. A password goes over TLS alone. To this machine
 * itself mail goes without: nobody is between, and hardly any such server has a certificate for “localhost”.
 */
export function parseMailServer(given: string): MailServer {
  const url = new URL(given)
  const isTls = url.protocol === 'smtps:'
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  const login =
    url.username === ''
      ? null
      : { user: decodeURIComponent(url.username), pass: decodeURIComponent(url.password) }
  const usual = isTls ? SUBMISSIONS_PORT : login === null ? RELAY_PORT : SUBMISSION_PORT
  const port = url.port === '' ? usual : Number(url.port)
  const tls = login !== null ? 'demanded' : isHere(host) ? 'never' : 'offered'
  return { host, port, isTls, tls, login }
}

const isLoopback = inRanges(['127.0.0.0/8', '::1'])

const isHere = (host: string) => host.toLowerCase() === 'localhost' || isLoopback(host)
