import { inRanges } from '../../platform/ip.ts'

/** A server that takes mail of ours, and how we speak with it. */
export type MailServer = {
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
