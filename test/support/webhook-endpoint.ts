import { write } from '../../src/db/database.ts'
import { makeAttempt } from '../../src/webhooks/delivery/attempt.ts'
import { listNextDeliveries, recordAttempts } from '../../src/webhooks/delivery-store.ts'
import type { DisabledCode } from '../../src/webhooks/endpoint.ts'
import type { EventKind } from '../../src/webhooks/event.ts'
import { emit } from '../../src/webhooks/event-store.ts'
import { createTestService, idleDeliveries } from './service.ts'

type HouseOptions = Parameters<typeof createTestService>[0]

export type Created = {
  readonly id: string
  readonly secret: string
  readonly [name: string]: unknown
}

/** A house with an endpoint, what happens to it, and how often the service was told to look for what is due. */
export async function endpoint(change: object = {}, options: HouseOptions = {}) {
  const wakes: number[] = []
  const deliveries = {
    ...idleDeliveries(),
    wake: () => void wakes.push(home.clock.now()),
  }
  const home = await createTestService({
    ...{ engine: { zone: { 'app.test': { A: ['8.8.8.8'] } } }, ...options },
    deps: { deliveries, ...options.deps },
  })
  const { json } = home
  /** Registers one more. */
  const another = async (change: object = {}): Promise<Created> => {
    const body = { url: 'https://app.test/hook', events: ['batch.completed'], ...change }
    return (await json('/v1/webhooks', { body })).data as Created
  }
  const { id, secret } = await another(change)
  const ways = happenings(home, id)
  return { ...home, ...ways, id, secret, another, wakes, path: `/v1/webhooks/${id}` }
}

type Home = Pick<
  Awaited<ReturnType<typeof createTestService>>,
  'database' | 'clock' | 'random' | 'service'
>

/** What makes something happen to an endpoint. */
export const happenings = ({ database, clock, random, service }: Home, id: string) => ({
  /** Something happens, and is to be sent to whoever subscribed to it; gives the ID of the event. */
  async happen(kind: EventKind = 'batch.completed', data: object = { job_id: 'job_a' }) {
    const event = { accountId: 'acc_1', kind, data, sandbox: false, now: clock.now(), random }
    const eventId = await write(database, trx => emit(trx, event))
    if (eventId === null) throw new Error('nobody subscribed')
    return eventId
  },
  /** Makes the next attempt that is due; with `last`, the last one of its delivery. */
  async attempt({ last = false, disabledCode = null as DisabledCode | null } = {}) {
    const o = { now: clock.now(), except: [], max: 1 }
    const [due] = await listNextDeliveries(database, id, o)
    if (due === undefined) throw new Error('nothing is due')
    const cycle = { trigger: due.trigger, attempt: due.attempt }
    const sent = last ? { ...due, attempt: 5 } : due
    const made = await makeAttempt({ ...service, version: service.settings.version }, sent)
    const delivery = { id: due.id, webhookId: id, cycle }
    const attempts = [{ ...made, delivery, disabledCode }]
    await write(database, trx => recordAttempts(trx, attempts, { now: clock.now() }))
    return due.id
  },
})

/** The one delivery that there is, as the log shows it. */
export async function onlyDelivery({
  json,
  path,
}: Pick<Awaited<ReturnType<typeof endpoint>>, 'json' | 'path'>) {
  const { items } = (await json(`${path}/deliveries`)).data as { items: Created[] }
  const [only] = items
  if (only === undefined || items.length > 1) throw new Error(`there are ${items.length}`)
  return only
}
