import { cancelJob } from '../../../src/jobs/job-state.ts'
import { MIXED, seedJob } from '../../support/job-rows.ts'
import { fakeDownload } from '../../support/list-download.ts'
import { createTestService, type RequestOptions } from '../../support/service.ts'
import { examplesOf, type Place } from './document.ts'

/** Data that the examples of parameters refer to. */
const JOB = 'job_xyz789'
export const KEY = 'key_01'

/** The service for which the examples were written. */
export async function createExampleService(options: Parameters<typeof createTestService>[0] = {}) {
  const fixture = await createTestService({
    isAdmin: true,
    ...options,
    deps: { download: fakeDownload, ...options.deps },
    engine: { zone: { 'app.example.com': { A: ['8.8.8.8'] } } },
  })
  await fixture.addKey({ id: KEY })
  return fixture
}

export type ExampleService = Awaited<ReturnType<typeof createExampleService>>

/** The path with its parameters filled in. */
export async function pathOf(fixture: ExampleService, { method, path }: Place): Promise<string> {
  if (path.includes('/keys/{id}')) return path.replace('{id}', KEY)
  if (path.includes('/webhooks/{id}')) {
    const id = await newWebhook(fixture)
    return path.replace('{id}', id).replace('{delivery_id}', await newDelivery(fixture, id))
  }
  if (path.startsWith('/v1/events/')) {
    return path.replace('{id}', await newEvent(fixture))
  }
  if (path.includes('/accounts/{id}')) return path.replace('{id}', 'acc_1')
  if (path.includes('/sources/{id}')) return path.replace('{id}', await newSource(fixture))
  if (path.includes('/people/{id}')) return path.replace('{id}', await newPerson(fixture))
  if (path.includes('/schedules/{id}')) return path.replace('{id}', await newSchedule(fixture))
  if (path === '/v1/schedules') await seedJob(fixture.database, { id: JOB, texts: MIXED })
  if (path === '/v1/domains/{domain}') return '/v1/domains/example.com'
  if (!path.includes('{id}')) return path
  const isToEnd = method === 'POST' && !/\/(download_url|reverify)$/.test(path)
  await seedJob(fixture.database, { id: JOB, texts: MIXED, ...(isToEnd && { done: 1 }) })
  if (path.endsWith('/resume')) await cancelJob(fixture.database, JOB)
  return path.replace('{id}', JOB).replace('{row}', '1')
}

async function newWebhook({ json }: ExampleService): Promise<string> {
  const body = { url: 'https://app.example.com/hook', events: ['batch.completed'] }
  return ((await json('/v1/webhooks', { body })).data as { id: string }).id
}

async function newSchedule({ database, json }: ExampleService): Promise<string> {
  await seedJob(database, { id: JOB, texts: MIXED })
  const body = { job_id: JOB, every_days: 30 }
  return ((await json('/v1/schedules', { body })).data as { id: string }).id
}

async function newPerson({ json }: ExampleService): Promise<string> {
  const body = { name: 'Bob', email: 'bob@example.com', role: 'member' }
  return ((await json('/v1/people', { body })).data as { id: string }).id
}

async function newSource({ json }: ExampleService): Promise<string> {
  const body = { provider: 'postmark' }
  return ((await json('/v1/feedback/sources', { body })).data as { id: string }).id
}

/** A delivery of a test event, which is in the log like all others. */
const newDelivery = async (fixture: ExampleService, webhookId: string): Promise<string> =>
  (await sendTest(fixture, webhookId)).delivery_id

const newEvent = async (fixture: ExampleService): Promise<string> =>
  (await sendTest(fixture, await newWebhook(fixture))).event_id

async function sendTest({ json }: ExampleService, webhookId: string) {
  const { data } = await json(`/v1/webhooks/${webhookId}/test`, { method: 'POST' })
  return data as { delivery_id: string; event_id: string }
}

function toBody(type: string, value: unknown): unknown {
  if (type !== 'multipart/form-data') return value
  const form = new FormData()
  for (const [name, text] of Object.entries(value as Record<string, string>)) {
    form.append(name, name === 'file' ? new Blob([text]) : text)
  }
  return form
}

async function sendable(body: unknown): Promise<RequestOptions> {
  if (!(body instanceof FormData)) return { body }
  const encoded = new Response(body)
  const headers = { 'Content-Type': encoded.headers.get('Content-Type') ?? '' }
  return { headers, body: new Uint8Array(await encoded.arrayBuffer()) }
}

/** The examples of the request body of an operation; none if it takes no body. */
export async function bodiesOf({ operation }: Place): Promise<RequestOptions[]> {
  const [sent] = Object.entries(operation.requestBody?.content ?? {})
  if (sent === undefined) return []
  const [type, media] = sent
  return Promise.all(examplesOf(media).map(([, value]) => sendable(toBody(type, value))))
}
