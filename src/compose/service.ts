import { join } from 'node:path'
import type { Hono } from 'hono'
import { createPasswordHasher } from '../accounts/people/password.ts'
import { IP_LIMITS } from '../accounts/plan.ts'
import { createPostgresLimits } from '../accounts/rate-limits/postgres-windows.ts'
import { openSqliteLimits } from '../accounts/rate-limits/sqlite-windows.ts'
import type { ApiDeps } from '../api/api-deps.ts'
import { createApp } from '../api/app.ts'
import type { Env } from '../api/context.ts'
import { type Admission, createAdmission } from '../api/middleware/admission.ts'
import { monitoringApp } from '../api/monitoring.ts'
import { bareHeaders } from '../api/request-context.ts'
import type { Config } from '../config/settings.ts'
import { createDashboard } from '../dashboard/dashboard.ts'
import { createHealth } from '../dashboard/health/create-health.ts'
import { INTAKE } from '../dashboard/lists/upload.ts'
import { firstKeys } from '../dashboard/session/setup.ts'
import { write } from '../db/database.ts'
import { readSecret } from '../db/service-secret.ts'
import { createDoctorCache, findPortFailure, runDoctor } from '../doctor/doctor-cache.ts'
import { thisMachine } from '../doctor/machine.ts'
import { titleParser } from '../engine/dns/operator-table.ts'
import { readMachineStatus } from '../engine/machine-status.ts'
import { deleteLoadingJobs } from '../jobs/import/item-import.ts'
import { clearUploads } from '../jobs/import/multipart-form.ts'
import { diskReader } from '../jobs/import/store-upload.ts'
import { releaseOrphanedReservations, startReservationCheck } from '../jobs/job-credits.ts'
import { openJobs } from '../jobs/job-list.ts'
import { startJobMails } from '../jobs/job-mails.ts'
import { startSchedules } from '../jobs/schedules/run-schedules.ts'
import { startRetentionJob } from '../maintenance/retention-job.ts'
import { systemClock } from '../platform/clock.ts'
import { isLoopbackHost } from '../platform/ip.ts'
import { writeLog } from '../platform/log.ts'
import { systemRandom } from '../platform/random.ts'
import { createSecretBox } from '../platform/secret-box.ts'
import { startEndpointAlerts } from '../webhooks/endpoint-alerts.ts'
import { createLogTransport } from '../webhooks/mail-transport.ts'
import { startDeliveries } from '../webhooks/start-deliveries.ts'
import { composeApi } from './api.ts'
import { composeDoctor } from './doctor.ts'
import { composeResolver, type ExternalDeps } from './engine.ts'
import { composeIdentityProvider } from './identity-provider.ts'
import { COMPOSE_LOG } from './telemetry.ts'
import { DEFAULT_TIMINGS } from './timings.ts'
import { composeDownload, composeTransport, readWebhookCa } from './webhook-transport.ts'
import { composeWork, type Services, type WorkDeps } from './worker.ts'

/** The service without a listening socket. */
export interface HttpService {
  readonly service: ApiDeps
  /** Serves the API and the dashboard. */
  readonly app: Pick<Hono<Env>, 'fetch'>
  /** Serves only health and metrics. */
  readonly watch: Pick<Hono<Env>, 'fetch'>
  /** Returns the headers of every response, for a client of that address. */
  headers(ip: string): Record<string, string>
  /** Rejects requests under overload, before `app` gets them. */
  readonly admission: Admission
  /** Whether the body of a request is a list, which takes longer to arrive. */
  takesList(request: Parameters<Admission>[0]): boolean
  /** Creates a page that shows a key once; returns its path. */
  offerKey(key: string): string
  /** Starts the drain: reports not ready and starts no new work. */
  stopSoon(): void
  /** Stops work, writes pending results and closes all resources. */
  close(): Promise<void>
}

/** Builds the service and resumes open jobs. */
export async function composeService(
  config: Config,
  externalDeps: ExternalDeps,
  deps: WorkDeps,
): Promise<HttpService> {
  const secrets = {
    ca: readWebhookCa(config),
    secret: readSecret(config, externalDeps.random ?? systemRandom),
  }
  const work = await composeWork(config, externalDeps, { ...deps, role: 'serve' })
  try {
    await recover(work, config, externalDeps)
    return buildService(work, config, externalDeps, { ...deps, ...secrets })
  } catch (error) {
    // Background work would otherwise keep the process alive.
    await work.close()
    throw error
  }
}

type ServiceDeps = WorkDeps & { readonly ca: string | null; readonly secret: string }

function buildService(
  work: Services,
  config: Config,
  externalDeps: ExternalDeps,
  { ca, secret, ...deps }: ServiceDeps,
): HttpService {
  const { clock = systemClock, random = systemRandom, log } = externalDeps
  const { dataDir } = config
  const { timings = DEFAULT_TIMINGS } = deps
  const secretBox = createSecretBox(secret, random)
  const { database, ledger, engine, priority, worker, plans } = work
  const limits =
    database.dialect === 'postgres'
      ? createPostgresLimits(database, { clock, log })
      : openSqliteLimits(join(dataDir, 'limits.sqlite'), { clock, log })
  const { resolver, close: closeResolver } = composeResolver(config, externalDeps.resolver, clock)
  const identityProvider = composeIdentityProvider(config, {
    clock,
    random,
    log,
    resolver,
    ca,
    baseUrl: deps.baseUrl,
  })
  const transport = externalDeps.transport ?? composeTransport(config, { clock, resolver, ca })
  const disk = diskReader({
    dataDir,
    log,
    minBytes: config.minFreeDisk,
    freeBytes: externalDeps.freeBytes ?? thisMachine.freeBytes,
  })
  const { databaseUrl, version } = deps
  const doctorCache = createDoctorCache({
    clock,
    log,
    runChecks: runDoctor(() =>
      composeDoctor(config, { databaseUrl, exchangers: null }, externalDeps),
    ),
  })
  const machine = () =>
    readMachineStatus(engine, {
      smtpPort: config.smtpPort,
      findPortFailure: egress => findPortFailure(doctorCache.latest, egress),
    })
  let isStopping = false
  const deliveries = startDeliveries({
    database,
    queue: work.queue,
    transport,
    secretBox,
    clock,
    log,
    version: deps.version,
    fastSandboxRetries: config.fastSandboxRetries,
    timings: timings.deliveries,
  })
  const service = composeApi({
    clock,
    random,
    log,
    database,
    engine,
    worker,
    ledger,
    limits,
    secretBox,
    resolver,
    transport,
    deliveries,
    disk,
    priority,
    machine,
    feedback: work.feedback,
    download: composeDownload(config, { clock, resolver, ca }),
    settings: {
      baseUrl: deps.baseUrl,
      version: deps.version,
      plans,
      dataDir,
      ipLimits: { ...IP_LIMITS, ...config.ipLimits },
      limits: config.limits,
      trustProxy: config.trustProxy,
      trustLoopback:
        config.trustProxy.length > 0 ||
        config.baseUrl === null ||
        isLoopbackHost(new URL(config.baseUrl).hostname),
      webhookAllowRanges: config.webhookAllowRanges,
      metricsToken: config.metricsToken,
      reacherApi: config.reacherApi,
      externalAges: config,
      actionPolicy: config.actionPolicy,
    },
    isStopping: () => isStopping,
    timings: timings.http,
  })
  const notify = externalDeps.notify ?? createLogTransport(log)
  const jobMails = startJobMails({
    database,
    clock,
    log,
    notify,
    baseUrl: deps.baseUrl,
    timings: timings.jobMails,
  })
  const schedules = startSchedules({
    database,
    clock,
    random,
    log,
    ledger,
    plans,
    worker,
    priority,
    disk,
    timings: timings.schedules,
  })
  const alerts = startEndpointAlerts({
    database,
    clock,
    log,
    notify,
    baseUrl: deps.baseUrl,
    notifyTo: config.notifyTo,
    timings: timings.notices,
  })
  const reservationCheck = startReservationCheck({ database, ledger, member: work.member, log })
  const retentionJob = startRetentionJob({
    ...config,
    database,
    clock,
    log,
    everyMs: timings.retentionEveryMs,
  })
  const keyPages = firstKeys(clock, random)
  const health = createHealth({
    clock,
    database,
    worker,
    deliveries,
    disk,
    egressPool: engine.egressPool,
    smtpPort: config.smtpPort,
    titleOf: titleParser(config.operators),
    doctorCache,
    machine,
    memoryBytes: () => process.memoryUsage.rss(),
    settings: { version, databaseUrl, concurrency: config.concurrency },
  })
  const dashboard = createDashboard({
    clock,
    random,
    log,
    database,
    disk,
    limits,
    firstKeys: keyPages,
    refusedRequests: service.refusedRequests,
    secretBox,
    passwords: createPasswordHasher(random),
    identityProvider,
    app: { fetch: (request, bindings) => app.fetch(request, bindings as Env['Bindings']) },
    settings: { baseUrl: deps.baseUrl, version: deps.version, dataDir },
    health,
  })
  const app = createApp(service, dashboard)
  service.routes.add(`POST ${INTAKE}`, { takesList: true })
  return {
    service,
    app,
    watch: monitoringApp(service, service.metrics),
    headers: ip => bareHeaders(service, ip),
    admission: createAdmission(service),
    takesList: ({ method, url }) => service.routes.find(method, url).takesList === true,
    offerKey: key => keyPages.offer(key),
    stopSoon() {
      isStopping = true
      service.streams.end()
      work.stopSoon()
      void schedules.stop()
      void deliveries.stop()
    },
    async close() {
      work.stopSoon()
      await Promise.all([schedules.stop(), reservationCheck.stop()])
      await Promise.all([
        worker.stop(),
        retentionJob.stop(),
        deliveries.stop(),
        service.lastUsed.close(),
      ])
      await Promise.all([alerts.stop(), jobMails.stop(), transport.close(), doctorCache.close()])
      closeResolver()
      await limits.close()
      await work.close()
    },
  }
}

/**
 * Recovers after a crash or stop: deletes partial uploads, releases orphaned reservations and
 * resumes open jobs.
 */
async function recover(
  { database, worker }: Services,
  { dataDir }: Config,
  { log }: ExternalDeps,
): Promise<void> {
  clearUploads(dataDir)
  await write(database, trx => releaseOrphanedReservations(trx))
  // Other members may be importing lists; the poll of open jobs finds those to work on.
  if (database.dialect === 'postgres') return
  await deleteLoadingJobs(database)
  const open = await openJobs(database)
  for (const { id } of open) worker.take(id)
  if (open.length > 0) writeLog(log, COMPOSE_LOG.jobsResumed, { jobs: open.length })
}
