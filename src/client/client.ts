import { createConnection, type ResponseInfo } from './connection.ts'
import { type ClientDeps, systemDeps } from './deps.ts'
import { createFeedbackResource, type Feedback } from './resources/feedback.ts'
import { createJobsResource, type Jobs, type WaitOptions, waitForEnd } from './resources/jobs.ts'
import { createListsResource, type Lists } from './resources/lists.ts'
import {
  type Accounts,
  createAccounts,
  createEvents,
  createKeys,
  createOwnAccount,
  createPeople,
  createSchedules,
  createUsage,
  createWebhooks,
  type Events,
  type Keys,
  type OwnAccount,
  type People,
  type Schedules,
  type Usage,
  type Webhooks,
} from './resources/methods.ts'
import { createVerifyResource, type Verify } from './resources/verify.ts'
import type { Job } from './types.ts'

export type { CallOptions, CreateOptions, ResponseInfo } from './connection.ts'
export { EvApiError, EvConnectionError, EvWebhookError } from './error.ts'
export type {
  ChangesQuery,
  DownloadOptions,
  JobOptions,
  RowsOptions,
  RowsQuery,
  WaitOptions,
} from './resources/jobs.ts'
export type {
  FileOptions,
  ListFile,
  PreviewOptions,
  PreviewUrlOptions,
  StatusOptions,
  UrlOptions,
} from './resources/lists.ts'
export type { Listing, Page } from './resources/requests.ts'
export type { ScoredOptions, SingleOptions, VerifyInput } from './resources/verify.ts'
export type { RateLimit } from './response.ts'
export type * from './types.ts'
export type { WebhookEvent } from './webhook-signature.ts'
export { verifyWebhook, type WebhookHeaders, type WebhookOptions } from './webhook-signature.ts'

export type ClientOptions = {
  /**
   * The secret of an API key: `ev_live_…`. The type includes undefined because environment
   * variables do, but without a key the constructor throws.
   */
  readonly apiKey: string | undefined
  /** URL of the service: `https://ev.example.com`. */
  readonly baseUrl: string
  /** Simulates results by the start of the address. Contacts no mail server and charges nothing. */
  readonly sandbox?: boolean
  /** Timeout per attempt. Default: 30 s, and 2 minutes for calls that send a list. */
  readonly timeoutMs?: number
  /** Maximum number of retries per call. Default: 3. */
  readonly retries?: number
  /** Called for every response, including those that are retried: for logs and metrics. */
  readonly onAnswer?: (info: ResponseInfo) => void
  /** Allows sending the key unencrypted to another machine. */
  readonly allowHttp?: boolean
} & Partial<ClientDeps>

/** Client of the API, with one method for each operation. */
export class EvClient {
  readonly verify: Verify
  readonly bulk: Lists['bulk']
  readonly bulkStatus: Lists['bulkStatus']
  readonly batch: Lists['batch']
  readonly file: Lists['file']
  readonly preview: Lists['preview']
  readonly url: Lists['url']
  readonly previewUrl: Lists['previewUrl']
  readonly jobs: Jobs
  readonly schedules: Schedules
  readonly account: OwnAccount
  readonly history: Usage['history']
  readonly domain: Usage['domain']
  readonly credits: Usage['credits']
  readonly limits: Usage['limits']
  readonly stats: Usage['stats']
  readonly audit: Usage['audit']
  readonly keys: Keys
  readonly people: People
  readonly accounts: Accounts
  readonly events: Events
  readonly webhooks: Webhooks
  readonly feedback: Feedback
  /** Resolves with the job when it is completed, failed or cancelled. */
  readonly waitForJob: (jobId: string, options?: WaitOptions) => Promise<Job>

  constructor(options: ClientOptions) {
    const { sandbox, timeoutMs, retries, onAnswer, fetch, now, sleep, random } = options
    const deps = { ...systemDeps, ...defined({ fetch, now, sleep, random }) }
    const connection = createConnection({
      deps,
      baseUrl: validateUrl(options),
      headers: {
        accept: 'application/json',
        authorization: `Bearer ${validateKey(options.apiKey)}`,
        ...(sandbox ? { 'x-ev-sandbox': 'true' } : {}),
      },
      timeoutMs: validateNumber('timeoutMs', timeoutMs ?? TIMEOUT_MS, 1),
      retries: validateNumber('retries', retries ?? RETRIES, 0),
      onAnswer: onAnswer ?? (() => {}),
    })
    const lists = createListsResource(connection)
    const usage = createUsage(connection)
    this.verify = createVerifyResource(connection)
    this.bulk = lists.bulk
    this.bulkStatus = lists.bulkStatus
    this.batch = lists.batch
    this.file = lists.file
    this.preview = lists.preview
    this.url = lists.url
    this.previewUrl = lists.previewUrl
    this.jobs = createJobsResource(connection)
    this.schedules = createSchedules(connection)
    this.account = createOwnAccount(connection)
    this.history = usage.history
    this.domain = usage.domain
    this.credits = usage.credits
    this.limits = usage.limits
    this.stats = usage.stats
    this.audit = usage.audit
    this.keys = createKeys(connection)
    this.people = createPeople(connection)
    this.accounts = createAccounts(connection)
    this.events = createEvents(connection)
    this.webhooks = createWebhooks(connection)
    this.feedback = createFeedbackResource(connection)
    this.waitForJob = (jobId, { onProgress, ...call } = {}) =>
      waitForEnd(wait => this.jobs.get(jobId, { ...call, wait }), deps, { ...call, onProgress })
  }
}

/** A single verification takes up to ten seconds. */
const TIMEOUT_MS = 30_000
const RETRIES = 3

/** Returns the URL of the service without a trailing slash and without `/v1`. */
function validateUrl({ baseUrl, allowHttp }: ClientOptions): string {
  const url = parseUrl(baseUrl)
  if (url === null || url.search !== '' || url.hash !== '') {
    throw new TypeError(
      `baseUrl must be the URL of the service, such as "https://ev.example.com", not "${baseUrl}".`,
    )
  }
  if (url.username !== '' || url.password !== '') {
    throw new TypeError('baseUrl must not contain a user name or password. Set the key in apiKey.')
  }
  if (url.protocol === 'http:' && !allowHttp && !isLoopback(url.hostname)) {
    throw new TypeError(
      `baseUrl "${baseUrl}" would send the key unencrypted. Use https, or set allowHttp.`,
    )
  }
  return `${url.origin}${url.pathname}`.replace(/(?<!\/)\/+$/, '').replace(/\/v1$/, '')
}

function parseUrl(text: string): URL | null {
  // The class URL also reads `https:ev.example.com`.
  if (!/^\s*https?:\/\/[^/\\]/i.test(text)) return null
  try {
    return new URL(text)
  } catch {
    return null
  }
}

const isLoopback = (host: string) => /^(localhost|.+\.localhost|127(\.\d+){3}|\[::1\])$/.test(host)

function validateKey(apiKey: string | undefined): string {
  // The message does not repeat the key, as messages are logged.
  if (typeof apiKey === 'string' && /^[\x21-\x7e]+$/.test(apiKey)) return apiKey
  throw new TypeError('apiKey must be an API key such as "ev_live_…", without spaces around it.')
}

function validateNumber(name: string, value: number, min: number): number {
  if (Number.isInteger(value) && value >= min) return value
  throw new TypeError(`${name} must be a whole number of at least ${min}, not ${value}.`)
}

/** Removes undefined properties. */
function defined<T extends object>(all: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const entries = Object.entries(all).filter(([, value]) => value !== undefined)
  return Object.fromEntries(entries) as { [K in keyof T]?: Exclude<T[K], undefined> }
}
