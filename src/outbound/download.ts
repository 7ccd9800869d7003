import { Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
import { abortable } from '../platform/abort.ts'
import { type Clock, SECOND } from '../platform/clock.ts'
import { EvError } from '../platform/error.ts'
import { formatDuration, formatMebibytes } from '../platform/format.ts'
import { DownloadFault, hostFault, invalidUrl, toDownloadFault } from './download-fault.ts'
import {
  type Dial,
  type DialOptions,
  HEADER_BYTES_MAX,
  openAgent,
  policyCheckedDial,
} from './policy-dial.ts'
import { isS3Url, type S3Access, signS3Request } from './s3.ts'
import { readStatusFault } from './status-fault.ts'
import { TransportFault } from './transport-error.ts'
import { parseDestination } from './url-policy.ts'

/** A file to download. */
export type DownloadRequest = {
  /** An https:// URL; with `s3`, `s3://bucket/key`. */
  readonly url: string
  readonly s3?: S3Access | undefined
  /** Maximum size of the file; Infinity: any. */
  readonly bytesMax: number
  /** Time for the whole download; null: any, as long as data arrives. */
  readonly totalMs: number | null
  readonly signal?: AbortSignal | undefined
}

/**
 * Downloads a file, passes its bytes to `use`, and returns its result. The stream fails unless the
 * file arrives completely. Throws DownloadFault and what `use` throws.
 */
export type Download = <T>(
  request: DownloadRequest,
  use: (bytes: Readable) => Promise<T>,
) => Promise<T>

/** Maximum time without data, before the response and within it. */
export const SILENCE_MS = 30 * SECOND
/** A link, a mirror and a signed URL take three. */
export const REDIRECTS_MAX = 5
const REDIRECTS = new Set([301, 302, 303, 307, 308])

/**
 * Returns a function that downloads files over HTTPS: only from addresses that the policy allows,
 * with a valid certificate. Each redirect is checked like the first URL. Plain HTTP goes to loopback
 * only.
 */
export function createDownload(deps: DialOptions): Download {
  const dial = policyCheckedDial(deps)
  return async (request, use) => {
    const watch = startWatch(deps.clock, request)
    try {
      let { url, headers } = await toFirstRequest(request, deps)
      for (let redirects = 0; ; redirects++) {
        const agent = await openAgent(agentOptions(dial, request, watch))
        const hop = { url, headers, agent }
        try {
          const response = await open(hop, watch)
          const next = request.s3 === undefined ? redirectTarget(response, url, deps) : null
          if (next === null) return await useBody(response, { ...hop, request, watch }, use)
          if (redirects === REDIRECTS_MAX)
            throw hostFault(
              'unreachable',
              url.host,
              `It redirects more than ${REDIRECTS_MAX} times.`,
            )
          url = next
          headers = {}
        } finally {
          await agent.destroy()
        }
      }
    } finally {
      watch.stop()
    }
  }
}

const agentOptions = (dial: Dial, { bytesMax }: DownloadRequest, { signal }: Watch) => ({
  dial: (to: URL) => dial(to, signal),
  idleMs: SECOND,
  requestsPerConnection: 1,
  // The sizes of chunks are sent with them.
  connectionBytesMax: 2 * bytesMax + HEADER_BYTES_MAX,
})

type Request = { readonly url: URL; readonly headers: Readonly<Record<string, string>> }
type Hop = Request & { readonly agent: Dispatcher }
type Response = Dispatcher.ResponseData

async function toFirstRequest(
  { url, s3 }: DownloadRequest,
  { clock, mayDial }: DialOptions,
): Promise<Request> {
  const { url: text, headers } =
    s3 === undefined ? { url, headers: {} } : await signS3Request(url, s3, clock.now())
  const parsed = parseDestination(text, mayDial)
  if (typeof parsed === 'string')
    throw invalidUrl(s3?.endpoint === undefined ? parsed : `Endpoint of the bucket: ${parsed}`)
  return { url: parsed, headers }
}

/** Sends a request and returns the response as soon as its headers have arrived. */
async function open({ url, headers, agent }: Hop, watch: Watch): Promise<Response> {
  const { origin, pathname, search } = url
  const path = `${pathname}${search}`
  try {
    return await watch.wait(
      agent.request({
        method: 'GET',
        origin,
        path,
        signal: watch.signal,
        // A file is stored as it is; its format is detected by its content.
        headers: { accept: '*/*', 'accept-encoding': 'identity', 'user-agent': 'ev', ...headers },
      }),
    )
  } catch (error) {
    throw toDownloadFault(error, url.host)
  }
}

/** Returns the URL that a response redirects to, or null. */
function redirectTarget(
  { statusCode, headers: { location } }: Response,
  from: URL,
  { mayDial }: DialOptions,
): URL | null {
  if (!REDIRECTS.has(statusCode) || typeof location !== 'string') return null
  const target = URL.parse(location, from.href)
  // RFC 9110 §10.2.2 allows a fragment.
  if (target !== null) target.hash = ''
  const checked = target === null ? 'It is not a URL.' : parseDestination(target.href, mayDial)
  if (typeof checked !== 'string') return checked
  throw hostFault('invalid_url', from.host, `It redirects to a URL that is not allowed. ${checked}`)
}

type BodyOptions = Hop & { readonly request: DownloadRequest; readonly watch: Watch }

async function useBody<T>(
  response: Response,
  options: BodyOptions,
  use: (bytes: Readable) => Promise<T>,
): Promise<T> {
  const { url, request, watch } = options
  try {
    if (response.statusCode !== 200)
      throw await watch.wait(readStatusFault(response, url.host, request.s3 !== undefined))
    checkHeaders(response, url.host, request.bytesMax)
  } catch (error) {
    throw toDownloadFault(error, url.host)
  }
  return await use(Readable.from(readBody(response, options), { objectMode: false }))
}

/** Refuses a file that is too large, encoded, or of a length that is not known. */
function checkHeaders({ headers }: Response, host: string, bytesMax: number): void {
  if (Number(headers['content-length'] ?? 0) > bytesMax) throw tooLarge(bytesMax)
  const encoding = String(headers['content-encoding'] ?? 'identity')
  if (!/^(identity|(x-)?gzip)?$/i.test(encoding.trim())) {
    throw hostFault(
      'unreachable',
      host,
      'The server compressed the file in a way that ev does not read. Serve it uncompressed or with gzip.',
    )
  }
  if (headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined) return
  throw hostFault(
    'unreachable',
    host,
    'The response has neither Content-Length nor chunks, so ev could not notice if its end was missing.',
  )
}

/** Fails if the body is shorter than announced, as undici does. */
async function* readBody(
  { body }: Response,
  { url, request: { bytesMax }, watch }: BodyOptions,
): AsyncGenerator<Uint8Array> {
  const chunks: AsyncIterator<Uint8Array> = body[Symbol.asyncIterator]()
  let size = 0
  for (;;) {
    const { value, done } = await watch.wait(chunks.next()).catch((error: unknown) => {
      throw toDownloadFault(error instanceof EvError ? error : cutOff(), url.host)
    })
    if (done) return
    size += value.byteLength
    if (size > bytesMax) throw tooLarge(bytesMax)
    yield value
  }
}

const cutOff = () =>
  new TransportFault(
    'connection_failed',
    'The connection was closed before the whole file had arrived. Try again.',
  )

const tooLarge = (bytesMax: number) =>
  new DownloadFault(
    'too_large',
    `The file has more than ${formatMebibytes(bytesMax)}, the limit for a list.`,
  )

/** The time limits of a download. */
type Watch = {
  /** Aborts at a limit and with the signal of the caller. */
  readonly signal: AbortSignal
  /** Waits for data. Rejects with a TransportFault at a limit. */
  wait<T>(data: Promise<T>): Promise<T>
  stop(): void
}

function startWatch(clock: Clock, { totalMs, signal: outer }: DownloadRequest): Watch {
  const late = new AbortController()
  const signal = outer === undefined ? late.signal : AbortSignal.any([late.signal, outer])
  const abortAfter = (ms: number, message: string) =>
    clock.after(ms, () => late.abort(new TransportFault('timeout', message)))
  const cancelTotal =
    totalMs === null
      ? () => {}
      : abortAfter(totalMs, `The download took longer than ${formatDuration(totalMs)}.`)
  return {
    signal,
    async wait(data) {
      const cancel = abortAfter(SILENCE_MS, `No data arrived for ${formatDuration(SILENCE_MS)}.`)
      try {
        return await abortable(data, signal)
      } finally {
        cancel()
      }
    },
    stop: cancelTotal,
  }
}

/** Returns the file name at the end of a URL: the last part of its path; empty if there is none. */
export function getFileName(url: string): string {
  const path = isS3Url(url) ? url.replace(/^s3:\/*[^/]*/i, '') : (URL.parse(url)?.pathname ?? '')
  const name = path.slice(path.lastIndexOf('/') + 1)
  return isS3Url(url) ? name : decodeName(name)
}

function decodeName(name: string): string {
  try {
    // An encoded slash is a part of the name.
    return decodeURIComponent(name).replaceAll('/', '_')
  } catch {
    return name
  }
}
