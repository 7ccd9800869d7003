import { write } from '../../src/db/database.ts'
import { makeAttempt } from '../../src/webhooks/attempt.ts'
import { recordAttempts } from '../../src/webhooks/attempt-store.ts'
import { listNextDeliveries } from '../../src/webhooks/delivery-store.ts'
import type { DisabledCode } from '../../src/webhooks/endpoint.ts'
import { emit } from '../../src/webhooks/event-store.ts'
import type { EventKind } from '../../src/webhooks/event-types.ts'
import { createTestService, idleDeliveries } from './service.ts'

type TestServiceOptions = Parameters<typeof createTestService>[0]

export type Created = {
  readonly id: string
  readonly secret: string
  readonly [name: string]: unknown
}

/**
 * Creates a service with an endpoint, functions that create events and attempts, and the times at
 * which deliveries were woken.
 */
export async function endpoint(change: object = {}, options: TestServiceOptions = {}) {
  const wakes: number[] = []
  const deliveries = {
    ...idleDeliveries(),
    wake: () => void wakes.push(fixture.clock.now()),
  }
  const fixture = await createTestService({
    engine: { zone: { 'app.test': { A: ['8.8.8.8'] } } },
    ...options,
    deps: { deliveries, ...options.deps },
  })
  const { json } = fixture
  /** Registers another endpoint. */
  const another = async (change: object = {}): Promise<Created> => {
    const body = { url: 'https://app.test/hook', events: ['batch.completed'], ...change }
    return (await json('/v1/webhooks', { body })).data as Created
  }
  const { id, secret } = await another(change)
  const actions = endpointActions(fixture, id)
  return { ...fixture, ...actions, id, secret, another, wakes, path: `/v1/webhooks/${id}` }
}

type Home = Pick<
  Awaited<ReturnType<typeof createTestService>>,
  'database' | 'clock' | 'random' | 'service'
>

/** Functions that create events and attempts of an endpoint. */
export const endpointActions = ({ database, clock, random, service }: Home, id: string) => ({
  /** Emits an event, and returns its ID. */
  async happen(kind: EventKind = 'batch.completed', data: object = { job_id: 'job_a' }) {
    const event = {
      accountId: 'acc_1',
      kind,
      data,
      sandbox: false,
      now: clock.now(),
      dueAt: clock.now(),
      random,
    }
    const eventId = await write(database, trx => emit(trx, event))
    if (eventId === null) throw new Error('no webhook subscribed to it')
    return eventId
  },
  /** Makes the next due attempt; with `last`, as the last one of its delivery. */
  async attempt({ last = false, disabledCode = null as DisabledCode | null } = {}) {
    const o = { now: clock.now(), except: [], max: 1 }
    const [due] = await listNextDeliveries(database, id, o)
    if (due === undefined) throw new Error('nothing is due')
    const cycle = { trigger: due.trigger, attempt: due.attempt }
    const sent = last ? { ...due, attempt: 5 } : due
    const made = await makeAttempt({ ...service, version: service.settings.version }, sent)
    const delivery = { id: due.id, webhookId: id, cycle }
    const attempts = [{ ...made, delivery, disabledCode }]
    await write(database, trx =>
      recordAttempts(trx, attempts, { now: clock.now(), steadyNow: clock.now() }),
    )
    return due.id
  },
})

/** Returns the only delivery, as in the log. */
export async function onlyDelivery({
  json,
  path,
}: Pick<Awaited<ReturnType<typeof endpoint>>, 'json' | 'path'>) {
  const { items } = (await json(`${path}/deliveries`)).data as { items: Created[] }
  const [only] = items
  if (only === undefined || items.length > 1) throw new Error(`there are ${items.length}`)
  return only
}
