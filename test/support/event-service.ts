import { onTestFinished } from 'vitest'
import { DEFAULT_JOB_MAIL_TIMINGS, startJobMails } from '../../src/jobs/job-mails.ts'
import type { WorkerTimings } from '../../src/jobs/worker/worker-timings.ts'
import type { Clock } from '../../src/platform/clock.ts'
import { createMemoryQueue } from '../../src/queue/memory-queue.ts'
import { DEFAULT_DELIVERY_TIMINGS, type DeliveryTimings } from '../../src/webhooks/attempt.ts'
import { DEFAULT_ALERT_TIMINGS, startEndpointAlerts } from '../../src/webhooks/endpoint-alerts.ts'
import type { MailTimings } from '../../src/webhooks/mail-sender.ts'
import { type Deliveries, startDeliveries } from '../../src/webhooks/start-deliveries.ts'
import type { FakeClock } from './clock.ts'
import { fakeNotify } from './notify.ts'
import { createTestService } from './service.ts'
import { drainEventLoop } from './wait.ts'
import type { Created } from './webhook-endpoint.ts'
import type { FakeTransport } from './webhook-transport.ts'

type EventServiceOptions = NonNullable<Parameters<typeof createTestService>[0]> & {
  /** Retries events within seconds, so that they fail for good after half a minute. */
  readonly fastRetries?: boolean
  /** Recipient of alerts. Default: ops@example.com. */
  readonly notifyTo?: string | null
  /** Longer intervals let days pass quickly. */
  readonly timings?: {
    readonly deliveries?: Partial<DeliveryTimings>
    readonly alerts?: Partial<MailTimings>
    readonly worker?: Partial<WorkerTimings>
  }
}

type Alerts = ReturnType<typeof startEndpointAlerts>

/** Only ends tests that cannot pass. */
const TIMEOUT_MS = 50_000
const STEP_MAX_MS = 10_000

/** A delivery as in the log of its webhook. */
export type Logged = Created & {
  readonly status: string
  readonly attempt: number
  readonly trigger: string
  readonly event_id: string
  readonly next_attempt_at: string | null
}

/**
 * Creates the service with what `ev serve` runs in the background: a worker, webhook deliveries and
 * alerts. Receivers and mail servers of `post` and `notify` record what they get. Events are those
 * of simulated addresses that are verified asynchronously.
 */
export async function createEventService({
  fastRetries = false,
  notifyTo = 'ops@example.com',
  timings = {},
  ...options
}: EventServiceOptions = {}) {
  const notify = fakeNotify()
  let start = (_: FakeTransport): Deliveries => {
    throw new Error('the service is not created yet')
  }
  let startMails = (_: Partial<MailTimings>): void => {
    throw new Error('the service is not created yet')
  }
  let startAlerts = (): Alerts => {
    throw new Error('the service is not created yet')
  }
  let [deliveries, alerts] = [null as Deliveries | null, null as Alerts | null]
  const fixture = await createTestService({
    engine: { zone: { 'app.test': { A: ['8.8.8.8'] } } },
    // Tests ask often while their clock stands still.
    settings: { limits: false },
    ...options,
    works: true,
    workerTimings: timings.worker ?? {},
    deliver: parts => {
      const { database, clock, log } = parts
      start = transport => {
        const started = startDeliveries({
          ...parts,
          queue: createMemoryQueue(database.steadyClock, log),
          transport,
          version: '0.0.0',
          fastSandboxRetries: fastRetries,
          timings: { ...DEFAULT_DELIVERY_TIMINGS, ...timings.deliveries },
        })
        onTestFinished(() => stopped(clock as FakeClock, started))
        return started
      }
      startAlerts = () => {
        const started = startEndpointAlerts({
          ...parts,
          notify,
          baseUrl: 'https://ev.test',
          notifyTo,
          timings: { ...DEFAULT_ALERT_TIMINGS, ...timings.alerts },
        })
        onTestFinished(() => stopped(clock as FakeClock, started))
        return started
      }
      startMails = changed => {
        const started = startJobMails({
          ...parts,
          notify,
          baseUrl: 'https://ev.test',
          timings: { ...DEFAULT_JOB_MAIL_TIMINGS, ...changed },
        })
        onTestFinished(() => stopped(clock as FakeClock, started))
      }
      alerts = startAlerts()
      deliveries = start(parts.post)
      return deliveries
    },
  })
  const { clock, json, post, request } = fixture

  /** Registers a webhook for verified addresses. */
  async function hook(change: object = {}): Promise<Created & { readonly path: string }> {
    const body = { url: 'https://app.test/hook', events: ['verification.completed'], ...change }
    const answer = await json('/v1/webhooks', { body })
    if (answer.success !== true) throw new Error(`No webhook was created: ${answer.error}`)
    const { data } = answer as { data: Created }
    return { ...data, path: `/v1/webhooks/${data.id}` }
  }
  /** Advances the clock from timer to timer until the condition holds. */
  async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
    const endAt = performance.now() + TIMEOUT_MS
    for (;;) {
      await drainEventLoop()
      if (await condition()) return
      if (performance.now() > endAt) throw new Error(`The condition did not hold: ${condition}`)
      await clock.advance(Math.min(clock.untilNextMs, STEP_MAX_MS))
    }
  }
  let addresses = 0
  /** Lets events happen: each is the end of the verification of one more simulated address. */
  async function happen(count = 1): Promise<void> {
    const headers = { 'X-EV-Sandbox': 'true' }
    for (let n = 0; n < count; n++) {
      const body = { email: `valid${++addresses}@a.example`, async: true }
      const { verification_id } = await json('/v1/verify/single', { body, headers })
      await until(
        async () => (await json(`/v1/jobs/${verification_id}`, { headers })).status === 'completed',
      )
    }
  }
  /** The deliveries of a webhook, newest first. */
  async function logged(webhookId: string, query = ''): Promise<Logged[]> {
    const { data } = await json(`/v1/webhooks/${webhookId}/deliveries${query}`)
    return (data as { items: Logged[] }).items
  }
  return {
    ...fixture,
    notify,
    hook,
    happen,
    logged,
    /** Starts more deliveries on the same database, as a second process or the next one does. */
    start: (transport: FakeTransport = post) => start(transport),
    /** The same for alerts. */
    startAlerts: () => startAlerts(),
    /** Starts the mails about finished lists, which do not run by default. */
    startMails: (changed: Partial<MailTimings> = {}) => startMails(changed),
    /** Stops what delivers events, and what sends alerts. */
    stopDeliveries: () => stopped(clock, deliveries ?? start(post)),
    stopAlerts: () => stopped(clock, alerts ?? startAlerts()),
    until,
    /** Advances the clock from timer to timer, and lets everything happen that needs no more time. */
    async pass(ms: number): Promise<void> {
      await drainEventLoop()
      for (let left = ms; left > 0; ) {
        const stepMs = Math.min(left, clock.untilNextMs)
        await clock.advance(stepMs)
        await drainEventLoop()
        left -= stepMs
      }
      await drainEventLoop(60)
    },
    patch: (path: string, body: object) => request(path, { method: 'PATCH', body }),
  }
}

/** Stops something that may wait for timers. */
async function stopped(clock: Clock & FakeClock, one: { stop(): Promise<unknown> }): Promise<void> {
  let isDone = false
  void one.stop().finally(() => {
    isDone = true
  })
  while (!isDone) await clock.advance(1_000)
}
