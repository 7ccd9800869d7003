import type { createTestService } from './service.ts'

type TestService = Awaited<ReturnType<typeof createTestService>>

/** The IDs of one thing of each kind. */
export type OwnedIds = Awaited<ReturnType<typeof addOneOfEverything>>

/** Adds one of everything to the first account of a service that processes lists. */
export async function addOneOfEverything({
  json,
  submit,
  finished,
}: Pick<TestService, 'json' | 'submit' | 'finished'>) {
  const create = async (path: string, body: object) =>
    (await json(path, { body })).data as Record<string, string>
  const hook = { url: 'https://8.8.8.8/', events: ['batch.completed'] }
  const webhook = (await create('/v1/webhooks', hook)).id ?? ''
  const job = await submit(['ann@a.test'])
  await finished(job)
  const ann = { name: 'Ann', email: 'ann@a.example', role: 'member' }
  const person = (await create('/v1/people', ann)).id ?? ''
  const source = (await create('/v1/feedback/sources', { provider: 'postmark' })).id ?? ''
  const schedule = (await create('/v1/schedules', { job_id: job, every_days: 30 })).id ?? ''
  const first = async (path: string, name: string) => {
    const { items } = (await json(path)).data as { items: Record<string, string>[] }
    return items[0]?.[name] ?? ''
  }
  const delivery = await first(`/v1/webhooks/${webhook}/deliveries`, 'id')
  const event = await first('/v1/events', 'event_id')
  return { job, webhook, person, source, schedule, delivery, event }
}
