import type { Dispatcher } from 'undici'
import { checkedAddresses, type UrlPolicy } from '../outbound/url-policy.ts'
import { type Clock, SECOND } from '../platform/clock.ts'
import { EvError, errorMessage } from '../platform/error.ts'
import { formatDuration, formatMebibytes } from '../platform/format.ts'
import { sanitizeText } from '../platform/text.ts'

export type DownloadDeps = UrlPolicy & { readonly clock: Clock }

/** For one source with its redirects: 32 MB, the largest source, at 0.5 MB per second. */
const DEADLINE_MS = 60 * SECOND
/**
 * A link, a mirror and HTTPS take three. Browsers follow 20 (Fetch standard, HTTP-redirect fetch).
 */
const REDIRECTS_MAX = 5
const REDIRECTS = new Set([301, 302, 303, 307, 308])

/**
 * Downloads a URL, up to `bytesMax`. Connections to each host use only the addresses that passed
 * the URL policy. Throws EvError('io') that names the fault of the source.
 */
export async function download(
  source: string,
  bytesMax: number,
  deps: DownloadDeps,
): Promise<Buffer> {
  const deadline = new AbortController()
  const late = new EvError('io', `the download took longer than ${formatDuration(DEADLINE_MS)}`)
  const cancel = deps.clock.after(DEADLINE_MS, () => deadline.abort(late))
  try {
    return await follow(new URL(source), bytesMax, deps, deadline.signal)
  } catch (cause) {
    const why = errorMessage(deadline.signal.aborted ? late : cause)
    throw new EvError('io', `${shown(source)} cannot be read: ${why}.`, { cause })
  } finally {
    cancel()
  }
}

/** Formats a URL for messages, without its password. */
export function shown(source: string): string {
  const url = URL.parse(source)
  if (url !== null && url.password !== '') url.password = '***'
  return sanitizeText(url?.href ?? source, SHOWN_MAX)
}

/** Enough of a URL to recognize it. */
const SHOWN_MAX = 200

async function follow(
  url: URL,
  bytesMax: number,
  deps: DownloadDeps,
  signal: AbortSignal,
): Promise<Buffer> {
  let at = url
  for (let redirects = 0; redirects <= REDIRECTS_MAX; redirects++) {
    const next = await get(at, bytesMax, deps, signal)
    if (Buffer.isBuffer(next)) return next
    if (at.protocol === 'https:' && next.protocol !== 'https:') {
      throw new Error('it redirects from HTTPS to HTTP')
    }
    // Never send the credentials to another origin.
    if (next.origin !== at.origin) next.username = next.password = ''
    at = next
  }
  throw new Error(`it redirects more than ${REDIRECTS_MAX} times`)
}

/** Returns the body, or the URL that the server redirects to. */
async function get(
  url: URL,
  bytesMax: number,
  deps: DownloadDeps,
  signal: AbortSignal,
): Promise<Buffer | URL> {
  if (!isHttp(url)) throw new Error(`it redirects to ${url.protocol}, not to HTTP`)
  const checked = await checkedAddresses(url.hostname, deps, signal)
  if ('fault' in checked) throw new Error(withoutDot(checked.fault))
  const { Agent, request } = await import('undici')
  const dispatcher = new Agent({ connect: { lookup: lookupAmong(checked.addresses) } })
  try {
    const authorization = basicAuth(url)
    const response = await request(`${url.origin}${url.pathname}${url.search}`, {
      dispatcher,
      signal,
      headersTimeout: 0,
      bodyTimeout: 0,
      headers: authorization === null ? {} : { authorization },
    })
    const { location } = response.headers
    if (REDIRECTS.has(response.statusCode) && typeof location === 'string') {
      if (!URL.canParse(location, url.href)) throw new Error('it redirects to an invalid URL')
      return new URL(location, url)
    }
    if (response.statusCode !== 200) {
      throw new Error(`the server responded with ${response.statusCode}`)
    }
    return await bodyOf(response, bytesMax)
  } finally {
    await dispatcher.destroy()
  }
}

const isHttp = ({ protocol }: URL) => protocol === 'http:' || protocol === 'https:'

const withoutDot = (sentence: string) => sentence.replace(/\.$/, '')

function basicAuth({ username, password }: URL): string | null {
  if (username === '' && password === '') return null
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  return `Basic ${Buffer.from(pair).toString('base64')}`
}

type Address = { address: string; family: number }
type Lookup = (
  hostname: string,
  options: { readonly all?: boolean | undefined },
  callback: (error: null, address: string | Address[], family?: number) => void,
) => void

/** Returns a lookup of the checked addresses, because a second DNS lookup may return others. */
function lookupAmong(addresses: readonly string[]): Lookup {
  const all = addresses.map(address => ({ address, family: address.includes(':') ? 6 : 4 }))
  const [{ address, family } = { address: '', family: 4 }] = all
  return (_, options, callback) => {
    if (options.all === true) callback(null, all)
    else callback(null, address, family)
  }
}

async function bodyOf({ body }: Dispatcher.ResponseData, bytesMax: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of body as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > bytesMax) throw new Error(`it is larger than ${formatMebibytes(bytesMax)}`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}
