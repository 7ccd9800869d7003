import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { onTestFinished } from 'vitest'
import { createAccount } from '../../src/accounts/account-store.ts'
import { createUsageLedger } from '../../src/accounts/credits/usage-ledger.ts'
import { newSecret } from '../../src/accounts/key.ts'
import type { Scope } from '../../src/accounts/key-rights.ts'
import { createKey, type NewKey } from '../../src/accounts/key-store.ts'
import { IP_LIMITS, PLANS } from '../../src/accounts/plan.ts'
import { openSqliteLimits } from '../../src/accounts/rate-limits/sqlite-windows.ts'
import { createApp } from '../../src/api/app.ts'
import type { DashboardSession } from '../../src/api/context.ts'
import { createAdmission } from '../../src/api/middleware/admission.ts'
import { monitoringApp } from '../../src/api/monitoring.ts'
import { bareHeaders } from '../../src/api/request-context.ts'
import type { ServiceDeps, ServiceSettings } from '../../src/api/service.ts'
import { composeApi } from '../../src/compose/api.ts'
import { composeEngine } from '../../src/compose/engine.ts'
import { toConfig } from '../../src/config/config.ts'
import { write } from '../../src/db/database.ts'
import { readMachineStatus } from '../../src/engine/machine-status.ts'
import { createIpPolicy } from '../../src/engine/smtp/dial-policy.ts'
import { FeedbackKnowledge } from '../../src/feedback/knowledge.ts'
import { diskReader } from '../../src/jobs/import/store-upload.ts'
import { ListWorker } from '../../src/jobs/list/list-worker.ts'
import { DEFAULT_SCHEDULE_TIMINGS, startSchedules } from '../../src/jobs/schedules/run-schedules.ts'
import type { JobWorker } from '../../src/jobs/worker/worker-deps.ts'
import { DEFAULT_WORKER_TIMINGS, type WorkerTimings } from '../../src/jobs/worker/worker-timings.ts'
import { createDownload } from '../../src/outbound/download.ts'
import { DAY, systemClock } from '../../src/platform/clock.ts'
import { Priority } from '../../src/platform/priority.ts'
import { createSecretBox } from '../../src/platform/secret-box.ts'
import { underContract } from '../api/contract/contract.ts'
import { tempDatabase, tempFolder } from './database.ts'
import { createTestEngine } from './engine.ts'
import { recordingLog } from './log.ts'
import { countedRandom } from './random.ts'
import { type FakeTransport, fakeTransport } from './webhook-transport.ts'

type TestServiceOptions = {
  /** Plan of the initial account. */
  readonly plan?: string
  readonly settings?: Partial<ServiceSettings>
  /** Whether the account is an admin. Default: false. */
  readonly isAdmin?: boolean
  /** Options of the engine and its mail servers. */
  readonly engine?: Parameters<typeof createTestEngine>[0]
  /** Whether lists are processed and schedules run. Default: false, lists stay queued. */
  readonly works?: boolean
  /** Intervals of that work. */
  readonly workerTimings?: Partial<WorkerTimings>
  /** Starts webhook deliveries, which do nothing by default. */
  readonly deliver?: (parts: DeliveryParts) => ServiceDeps['deliveries']
  /** Addresses from which lists may be downloaded, and the PEM of their certificate authority. */
  readonly downloads?: { readonly allowRanges: readonly string[]; readonly ca: string }
  /** The free space of a folder, with the minimum below which lists are refused; plenty if left out. */
  readonly freeDisk?: {
    readonly minBytes: number
    readonly read: (folder: string) => Promise<number>
  }
  /** Replacements for parts of the service. */
  readonly deps?: Partial<ServiceDeps>
}

/** What webhook deliveries share with the requests of a test service. */
export type DeliveryParts = Pick<
  ServiceDeps,
  'database' | 'clock' | 'random' | 'log' | 'secretBox'
> & { readonly post: FakeTransport }

export type RequestOptions = {
  readonly method?: string
  /** The secret of a key; null for none; defaults to a key with all scopes. */
  readonly key?: string | null
  /** Sent as JSON, unless it is text or bytes. */
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  readonly ip?: string
  /** Sends the request as the dashboard does for this session. */
  readonly session?: DashboardSession | undefined
}

/**
 * Creates the service without a port: with an empty database, a fake clock, a counting random
 * source, an account and its key.
 */
export async function createTestService({
  plan = 'enterprise',
  ...given
}: TestServiceOptions = {}) {
  const { engine, clock, zone, mx, settled } = createTestEngine({
    ...given.engine,
    skipsTime: false,
  })
  const database = await tempDatabase({ clock })
  const random = countedRandom()
  const { log, lines } = recordingLog()
  const dataDir = given.settings?.dataDir ?? tempFolder()
  const plans = given.settings?.plans ?? new Map(PLANS.map(one => [one.name, one]))
  // Counts that a restart continues need a folder of the test.
  const limitsFile = given.settings?.dataDir ? join(dataDir, 'limits.sqlite') : ':memory:'
  const limits = openSqliteLimits(limitsFile, { clock, log })
  const ledger = createUsageLedger({ database, clock, random, log, plans })
  const worker = idleWorker()
  const feedback = new FeedbackKnowledge(database, { feedbackScope: 'account', calibration: true })
  const post = fakeTransport()
  const secretBox = createSecretBox('a secret of tests', random)
  const parts = { database, clock, random, log, secretBox, post }
  const priority = new Priority(systemClock)
  // Imports would wait in real time, in which any time of the fake clock could pass.
  priority.stop()
  let stopping = false
  /** Starts a worker like that of a service, for real and simulated lists. */
  function startWorker(): JobWorker {
    const config = toConfig({ flags: {}, environment: {}, file: null })
    const sandbox = composeEngine(config, { clock, random, log }, { sandbox: true })
    const started = new ListWorker({
      database,
      log,
      random,
      ledger,
      feedback,
      baseUrl: BASE_URL,
      engineFor: job => (job.sandbox === 1 ? sandbox : engine),
      egresses: engine.egresses,
      concurrency: 10,
      greylistDelayMs: null,
      wait: true,
      timings: { ...DEFAULT_WORKER_TIMINGS, ...given.workerTimings },
    })
    onTestFinished(() => settled(started.stop()).finally(() => sandbox.close()))
    return started
  }
  const service = composeApi({
    clock,
    random,
    log,
    database,
    engine,
    ledger,
    limits,
    worker: given.works ? startWorker() : worker,
    priority,
    resolver: zone,
    transport: post,
    download: createDownload({
      clock,
      resolver: zone,
      mayDial: createIpPolicy(given.downloads?.allowRanges ?? []),
      ...(given.downloads && { ca: given.downloads.ca }),
    }),
    feedback,
    disk: given.freeDisk
      ? diskReader({
          dataDir,
          log,
          minBytes: given.freeDisk.minBytes,
          freeBytes: given.freeDisk.read,
        })
      : async () => ({ freeBytes: 5e9, isLow: false }),
    deliveries: given.deliver?.(parts) ?? idleDeliveries(),
    secretBox,
    settings: {
      baseUrl: BASE_URL,
      version: '0.0.0',
      plans,
      ipLimits: IP_LIMITS,
      limits: true,
      trustProxy: [],
      trustLoopback: true,
      webhookAllowRanges: [],
      metricsToken: null,
      reacherApi: false,
      externalAges: { externalMaxAgeMs: 90 * DAY, externalUnknownMaxAgeMs: 30 * DAY },
      actionPolicy: 'balanced',
      dataDir,
      ...given.settings,
    },
    machine: () => readMachineStatus(service.engine, { smtpPort: 25, findPortFailure: () => null }),
    isStopping: () => stopping,
    ...given.deps,
  })
  if (given.works) {
    const schedules = startSchedules({ ...service, plans, timings: DAILY_SCHEDULES })
    onTestFinished(() => settled(schedules.stop()))
  }
  const app = createApp(service)
  underContract(app, service)
  onTestFinished(async () => {
    await ledger.stop()
    await service.lastUsed.close()
    await limits.close()
  })
  let keys = 0
  /** Adds a key. */
  async function addKey({
    kind = 'live',
    ...o
  }: Partial<Omit<NewKey, 'secret'>> & { readonly kind?: 'live' | 'test' } = {}): Promise<string> {
    const secret = newSecret(random, kind)
    await write(database, trx =>
      createKey(trx, {
        ...unlimitedKey(),
        id: `key_${++keys}`,
        secret,
        now: clock.now(),
        ...o,
      }),
    )
    return secret.text
  }
  const addAccount = (id: string, accountPlan = plan, isAdmin = false) =>
    write(database, trx => {
      const now = clock.now()
      return createAccount(trx, { id, name: id, plan: accountPlan, operator: isAdmin, now })
    })
  await addAccount('acc_1', plan, given.isAdmin ?? false)
  const key = await addKey()

  /** Sends a request as a client at 192.0.2.1. */
  async function request(path: string, o: RequestOptions = {}): Promise<Response> {
    const { method = o.body === undefined ? 'GET' : 'POST', ip = '192.0.2.1' } = o
    const headers = new Headers(o.headers)
    if (o.key !== null) headers.set('Authorization', `Bearer ${o.key ?? key}`)
    const isJson = o.body !== undefined && typeof o.body !== 'string' && !ArrayBuffer.isView(o.body)
    if (o.body !== undefined && !headers.has('Content-Type')) {
      headers.set('Content-Type', 'application/json')
    }
    const body = isJson ? JSON.stringify(o.body) : (o.body as string | undefined)
    const init = { method, headers, ...(body !== undefined && { body }) }
    const incoming = { socket: { remoteAddress: ip } }
    return app.request(path, init, { incoming, ...(o.session && { session: o.session }) })
  }
  /** Returns the body of the response to a request. */
  async function json(path: string, o: RequestOptions = {}): Promise<Record<string, unknown>> {
    return (await settled(request(path, o))).json() as Promise<Record<string, unknown>>
  }
  return {
    app,
    service,
    /** Rejects requests under overload, before `app` gets them. */
    admission: createAdmission(service),
    /** Serves only health and metrics. */
    watch: monitoringApp(service, service.metrics),
    /** Headers of responses that the server sends without `app`. */
    headers: (ip: string) => bareHeaders(service, ip),
    database,
    clock,
    zone,
    mx,
    random,
    ledger,
    worker,
    post,
    lines,
    key,
    request,
    addKey,
    addAccount,
    /** Advances the clock until a promise settles, for requests that probe mail servers. */
    settled,
    stop: () => {
      stopping = true
    },
    json,
    /** The credits of the current period. */
    async credits() {
      await settled(ledger.flushed())
      const { data } = await json('/v1/credits')
      const { credits_consumed: used, credits_held: held } = data as Record<string, number>
      return { used, held }
    },
    /** Verifies a short list, and waits until the history and the statistics have it. */
    async verify(emails: readonly string[], ofKey = key): Promise<void> {
      await json('/v1/verify/bulk', { body: { emails }, key: ofKey })
      await settled(ledger.flushed())
    },
    /** Submits a list, and returns its ID. */
    async submit(
      rows: readonly ListRow[],
      { headers, key, ...more }: ListOptions = {},
    ): Promise<string> {
      const body =
        typeof rows[0] === 'object' ? { items: rows, ...more } : { emails: rows, ...more }
      const { job_id } = await json('/v1/verify/batch', {
        body,
        ...(headers !== undefined && { headers }),
        ...(key !== undefined && { key }),
      })
      return String(job_id)
    },
    /** Waits until a list is finished, with `works`. */
    async finished(jobId: string, ofKey = key): Promise<void> {
      for (;;) {
        const { data } = await json(`/v1/jobs/${jobId}?wait=60`, { key: ofKey })
        if ((data as { completed_at: string | null }).completed_at !== null) return
      }
    },
  }
}

/** Schedules are days apart, and each poll costs time. */
const DAILY_SCHEDULES = { ...DEFAULT_SCHEDULE_TIMINGS, pollMs: DAY }

const BASE_URL = 'https://ev.test'

type ListRow = string | { readonly email: string; readonly id?: string | number }

/** Fields of the request, and how it is sent. */
type ListOptions = Pick<RequestOptions, 'headers' | 'key'> & {
  readonly [field: string]: unknown
}

/** Webhook deliveries that do nothing. */
export const idleDeliveries = (): ServiceDeps['deliveries'] => ({
  wake: () => {},
  status: () => ({ inFlight: 0, delivered: 0, retried: 0, failed: 0 }),
})

/** A key of the first account with all scopes, without ID, secret and time. */
export const unlimitedKey = () => ({
  accountId: 'acc_1',
  name: 'test',
  scopes: ['*'] as Scope[],
  allowedIps: [],
  allowedDomains: [],
  rateLimitPerMinute: null,
  expiresAt: null,
})

/** A worker that does nothing but record its calls; what it has taken is active until dropped. */
export function idleWorker(): JobWorker & { readonly taken: string[]; readonly dropped: string[] } {
  const taken: string[] = []
  const dropped: string[] = []
  const jobIds = new Set<string>()
  return {
    taken,
    dropped,
    jobIds,
    take(jobId) {
      taken.push(jobId)
      jobIds.add(jobId)
    },
    drop(jobId) {
      dropped.push(jobId)
      jobIds.delete(jobId)
    },
    finish: () => {},
    changed: (_, signal) =>
      new Promise(resolve => signal.addEventListener('abort', () => resolve(null))),
    waitingInMemory: () => ({ counts: new Map(), failedLookups: null }),
    status: () => ({ jobs: jobIds.size, waiting: 0, running: 0 }),
    stop: () => setImmediate(),
  }
}
