import { createConnection, type Seen } from './connection.ts'
import { type ClientDeps, systemDeps } from './deps.ts'
import { type Account, accountRoom } from './resources/account.ts'
import { type Jobs, jobsRoom } from './resources/jobs.ts'
import { type Keys, keysRoom } from './resources/keys.ts'
import { type Lists, listsRoom } from './resources/lists.ts'
import { type Verify, verifyRoom } from './resources/verify.ts'
import { type WaitOptions, waitForEnd } from './resources/wait.ts'
import { type Webhooks, webhooksRoom } from './resources/webhooks.ts'
import type { Job } from './types.ts'

export type { CallOptions, CreateOptions, Seen } from './connection.ts'
export { EvApiError, EvConnectionError, EvWebhookError } from './error.ts'
export type { DownloadOptions, JobOptions, RowsOptions, RowsQuery } from './resources/jobs.ts'
export type { FileOptions, ListFile, PreviewOptions, StatusOptions } from './resources/lists.ts'
export type { Listing, Page } from './resources/pagination.ts'
export type { Question, ScoredOptions, SingleOptions } from './resources/verify.ts'
export type { WaitOptions } from './resources/wait.ts'
export type { RateLimit } from './response.ts'
export type * from './types.ts'
export type { EventData, WebhookEvent } from './webhook-event.ts'
export { verifyWebhook, type WebhookHeaders, type WebhookOptions } from './webhook-signature.ts'

export type ClientOptions = {
  /** The text of a key: `ev_live_…`. */
  readonly apiKey: string
  /** Where the service is: `https://ev.example.com`. */
  readonly baseUrl: string
  /** Results are simulated by the beginning of the address: nobody is asked, nothing is charged. */
  readonly sandbox?: boolean
  /** For each attempt; 30 s when left out, and two minutes for the calls that send a list. */
  readonly timeoutMs?: number
  /** How often a call is tried again at most; 3 when left out. */
  readonly retries?: number
  /** Told of every answer, of those that are tried again too: for logs and measures. */
  readonly onAnswer?: (seen: Seen) => void
  /** Lets the key travel unencrypted to another machine. */
  readonly allowHttp?: boolean
} & Partial<ClientDeps>

/** The API of the service, one method for each of its paths. */
export class EvClient {
  readonly verify: Verify
  readonly bulk: Lists['bulk']
  readonly bulkStatus: Lists['bulkStatus']
  readonly batch: Lists['batch']
  readonly file: Lists['file']
  readonly preview: Lists['preview']
  readonly jobs: Jobs
  readonly history: Account['history']
  readonly credits: Account['credits']
  readonly limits: Account['limits']
  readonly stats: Account['stats']
  readonly keys: Keys
  readonly webhooks: Webhooks
  /** Resolves with the job when it has ended: completed, failed or cancelled. */
  readonly waitForJob: (jobId: string, options?: WaitOptions) => Promise<Job>

  constructor(options: ClientOptions) {
    const { sandbox, timeoutMs, retries, onAnswer, fetch, now, sleep, random } = options
    const deps = { ...systemDeps, ...given({ fetch, now, sleep, random }) }
    const connection = createConnection({
      deps,
      baseUrl: checkedUrl(options),
      headers: {
        accept: 'application/json',
        authorization: `Bearer ${checkedKey(options.apiKey)}`,
        ...(sandbox ? { 'x-ev-sandbox': 'true' } : {}),
      },
      timeoutMs: checkedNumber('timeoutMs', timeoutMs ?? TIMEOUT_MS, 1),
      retries: checkedNumber('retries', retries ?? RETRIES, 0),
      onAnswer: onAnswer ?? (() => {}),
    })
    const lists = listsRoom(connection)
    const account = accountRoom(connection)
    this.verify = verifyRoom(connection)
    this.bulk = lists.bulk
    this.bulkStatus = lists.bulkStatus
    this.batch = lists.batch
    this.file = lists.file
    this.preview = lists.preview
    this.jobs = jobsRoom(connection)
    this.history = account.history
    this.credits = account.credits
    this.limits = account.limits
    this.stats = account.stats
    this.keys = keysRoom(connection)
    this.webhooks = webhooksRoom(connection)
    this.waitForJob = (jobId, { onProgress, ...call } = {}) =>
      waitForEnd(wait => this.jobs.get(jobId, { ...call, wait }), deps, { ...call, onProgress })
  }
}

/** A single verification takes up to ten seconds. */
const TIMEOUT_MS = 30_000
const RETRIES = 3

/** The root of the service, without a slash at its end; its `/v1` may be given or left out. */
function checkedUrl({ baseUrl, allowHttp }: ClientOptions): string {
  const url = urlOf(baseUrl)
  if (url === null || !/^https?:$/.test(url.protocol) || url.search !== '' || url.hash !== '') {
    throw new TypeError(
      `baseUrl takes the address of the service, as "https://ev.example.com", not "${baseUrl}".`,
    )
  }
  if (url.username !== '' || url.password !== '') {
    throw new TypeError('baseUrl takes no name and no password: the key goes into apiKey.')
  }
  if (url.protocol === 'http:' && !allowHttp && !isLoopback(url.hostname)) {
    throw new TypeError(
      `baseUrl is plain HTTP ("${baseUrl}"): whoever is between could read the key. Use https, or set allowHttp.`,
    )
  }
  return `${url.origin}${url.pathname}`.replace(/\/+$/, '').replace(/\/v1$/, '')
}

function urlOf(text: string): URL | null {
  try {
    return new URL(text)
  } catch {
    return null
  }
}

const isLoopback = (host: string) => /^(localhost|.+\.localhost|127(\.\d+){3}|\[::1\])$/.test(host)

function checkedKey(apiKey: string): string {
  // Nothing of it is repeated: a key does not belong into a log.
  if (typeof apiKey === 'string' && /^[\x21-\x7e]+$/.test(apiKey)) return apiKey
  throw new TypeError('apiKey takes the text of a key, as "ev_live_…", without spaces around it.')
}

function checkedNumber(name: string, value: number, min: number): number {
  if (Number.isInteger(value) && value >= min) return value
  throw new TypeError(`${name} takes a whole number from ${min}, not ${value}.`)
}

/** The same object without what is undefined. */
function given<T extends object>(all: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const some = Object.entries(all).filter(([, value]) => value !== undefined)
  return Object.fromEntries(some) as { [K in keyof T]?: Exclude<T[K], undefined> }
}
