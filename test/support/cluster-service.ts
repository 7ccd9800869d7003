import { onTestFinished } from 'vitest'
import { createAccount } from '../../src/accounts/account-store.ts'
import { createUsageLedger } from '../../src/accounts/credits/usage-ledger.ts'
import { newSecret } from '../../src/accounts/key.ts'
import { createKey, type NewKey } from '../../src/accounts/key-store.ts'
import { IP_LIMITS, PLANS } from '../../src/accounts/plan.ts'
import { createPostgresLimits } from '../../src/accounts/rate-limits/postgres-windows.ts'
import { createApp } from '../../src/api/app.ts'
import type { Env } from '../../src/api/context.ts'
import type { ServiceSettings } from '../../src/api/service.ts'
import { composeApi } from '../../src/compose/api.ts'
import { createDashboard } from '../../src/dashboard/dashboard.ts'
import { firstKeys } from '../../src/dashboard/session/setup.ts'
import { type Database, openDatabase, write } from '../../src/db/database.ts'
import type { PoolTimings } from '../../src/db/postgres/connect-backoff.ts'
import { readMachineStatus } from '../../src/engine/machine-status.ts'
import { FeedbackKnowledge } from '../../src/feedback/knowledge.ts'
import { type Clock, DAY, systemClock } from '../../src/platform/clock.ts'
import { Priority } from '../../src/platform/priority.ts'
import { systemRandom } from '../../src/platform/random.ts'
import { createSecretBox } from '../../src/platform/secret-box.ts'
import { underContract } from '../api/contract/contract.ts'
import { tempFolder } from './database.ts'
import { createTestEngine } from './engine.ts'
import { FAST_TIMINGS } from './fast-timings.ts'
import { idleHealth } from './idle-health.ts'
import { fakeDownload } from './list-download.ts'
import { recordingLog } from './log.ts'
import { instantPasswords } from './people.ts'
import { openServer } from './postgres-pool.ts'
import { idleDeliveries, idleWorker, type RequestOptions, unlimitedKey } from './service.ts'
import { fakeTransport } from './webhook-transport.ts'

type ServerOptions = {
  readonly settings?: Partial<ServiceSettings>
  readonly engine?: Parameters<typeof createTestEngine>[0]
  readonly clock?: Clock
  readonly pool?: PoolTimings
}

/**
 * Creates a service like `ev serve` on PostgreSQL, without a port and with the system clock. Jobs
 * are not processed.
 */
export async function createClusterService(url: string, given: ServerOptions = {}) {
  const { clock = systemClock } = given
  const random = systemRandom
  const database = given.pool
    ? await openDatabase(url, clock, { timings: given.pool })
    : await openServer(url, clock)
  const { log, lines } = recordingLog()
  const plans = new Map(PLANS.map(one => [one.name, one]))
  const { engine, zone } = createTestEngine({
    ...given.engine,
    engine: { clock, ...given.engine?.engine },
  })
  const limits = createPostgresLimits(database, { clock, log })
  const ledger = createUsageLedger({ database, clock, random, log, plans })
  const dataDir = tempFolder()
  const service = composeApi({
    clock,
    random,
    log,
    database,
    engine,
    ledger,
    limits,
    feedback: new FeedbackKnowledge(database, { feedbackScope: 'account', calibration: true }),
    priority: new Priority(systemClock),
    disk: async () => ({ freeBytes: 5e9, isLow: false }),
    worker: idleWorker(),
    transport: fakeTransport(),
    resolver: zone,
    download: fakeDownload,
    deliveries: idleDeliveries(),
    secretBox: createSecretBox('a secret of tests', random),
    settings: {
      baseUrl: 'https://ev.test',
      version: '0.0.0',
      plans,
      ipLimits: IP_LIMITS,
      dataDir,
      limits: true,
      trustProxy: [],
      trustLoopback: true,
      webhookAllowRanges: [],
      metricsToken: null,
      reacherApi: false,
      externalAges: { externalMaxAgeMs: 90 * DAY, externalUnknownMaxAgeMs: 30 * DAY },
      actionPolicy: 'balanced',
      ...given.settings,
    },
    machine: () => readMachineStatus(service.engine, { smtpPort: 25, findPortFailure: () => null }),
    isStopping: () => false,
    timings: FAST_TIMINGS.http,
  })
  const pages = createDashboard({
    clock,
    random,
    log,
    database,
    firstKeys: firstKeys(clock, random),
    refusedRequests: service.refusedRequests,
    secretBox: service.secretBox,
    passwords: instantPasswords(),
    identityProvider: null,
    app: { fetch: (request, bindings) => app.fetch(request, bindings as Env['Bindings']) },
    settings: service.settings,
    disk: service.disk,
    limits: service.limits,
    health: idleHealth(),
  })
  const app = createApp(service, pages)
  underContract(app, service)
  onTestFinished(async () => {
    await service.ledger.stop()
    await service.lastUsed.close()
    await limits.close()
    await engine.close()
    await database.close()
  })

  /** Sends a request as a client at 192.0.2.1. */
  async function request(path: string, o: RequestOptions = {}): Promise<Response> {
    const { method = o.body === undefined ? 'GET' : 'POST', ip = '192.0.2.1' } = o
    const headers = new Headers(o.headers)
    if (typeof o.key === 'string') headers.set('Authorization', `Bearer ${o.key}`)
    if (o.body !== undefined && !(o.body instanceof FormData)) {
      headers.set('Content-Type', 'application/json')
    }
    const body = o.body instanceof FormData ? o.body : JSON.stringify(o.body)
    const init = { method, headers, ...(o.body !== undefined && { body }) }
    return app.request(path, init, {
      incoming: { socket: { remoteAddress: ip } },
    })
  }
  return { service, database, app, lines, request }
}

export type ClusterService = Awaited<ReturnType<typeof createClusterService>>

/** Requests a page as a browser does. */
export const page = async (
  { app }: ClusterService,
  path: string,
  init: RequestInit,
): Promise<Response> => {
  const headers = { 'Sec-Fetch-Site': 'same-origin', ...init.headers }
  const bindings = { incoming: { socket: { remoteAddress: '192.0.2.1' }, httpVersionMajor: 1 } }
  return app.fetch(new Request(`https://ev.test${path}`, { ...init, headers }), bindings)
}

/** Creates an account and a key with all scopes. */
export async function account(database: Database, plan = 'enterprise'): Promise<string> {
  const now = systemClock.now()
  await write(database, trx => createAccount(trx, { id: 'acc_1', name: 'a', plan, now }))
  return addKey(database)
}

/** Adds a key to that account. */
export async function addKey(database: Database, o: Partial<NewKey> = {}): Promise<string> {
  const now = systemClock.now()
  const secret = newSecret(systemRandom, 'live')
  await write(database, trx =>
    createKey(trx, {
      ...unlimitedKey(),
      id: 'key_1',
      secret,
      now,
      ...o,
    }),
  )
  return secret.text
}
