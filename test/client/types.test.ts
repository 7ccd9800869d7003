import { describe, expectTypeOf, test } from 'vitest'
import type { EvApiError, EvClient, WebhookEvent } from '../../src/client/client.ts'
import type { EventData } from '../../src/client/types.ts'
import type { EventData as EmittedData, EventKind } from '../../src/webhooks/event-types.ts'

// Nothing of these runs: they are wrong when they do not compile.
describe('types', () => {
  test('distinguish a short list from a long one', () => {
    expectTypeOf<readonly string[]>().toExtend<Parameters<EvClient['bulk']>[0]>()
    type Bulk = Awaited<ReturnType<EvClient['bulk']>>
    expectTypeOf<Extract<Bulk, { instant: true }>['results'][number]['reason']>().toExtend<string>()
    expectTypeOf<Exclude<Bulk, { instant: true }>['status']>().toEqualTypeOf<'queued'>()
  })

  test('describe the responses', () => {
    expectTypeOf<Awaited<ReturnType<EvClient['verify']>>['score']>().toBeNumber()
    type Single = Awaited<ReturnType<EvClient['verify']['single']>>
    expectTypeOf<Single['risk_level']>().toEqualTypeOf<'low' | 'medium' | 'high' | 'unknown'>()
    expectTypeOf<Awaited<ReturnType<EvClient['keys']['create']>>['key']>().toBeString()
    type Credits = Awaited<ReturnType<EvClient['credits']>>
    expectTypeOf<Credits['credits_balance']>().toEqualTypeOf<number | null>()
    expectTypeOf<Awaited<ReturnType<EvClient['jobs']['delete']>>>().toBeVoid()
  })

  test('iterate lists', () => {
    type Item<T> = T extends AsyncIterable<infer One> ? One : never
    expectTypeOf<Item<ReturnType<EvClient['history']>>['email']>().toBeString()
    expectTypeOf<Item<ReturnType<EvClient['jobs']['results']>>['row']>().toBeNumber()
    expectTypeOf<Item<ReturnType<EvClient['jobs']['csv']>>>().toBeString()
  })

  test('refuse unknown options', () => {
    const never = (_: (client: EvClient) => unknown) => {}
    // @ts-expect-error An address is a string.
    never(client => client.verify.single(7))
    // @ts-expect-error `async` has its own method, with another response.
    never(client => client.verify.single({ email: 'a@example.com', async: true }))
    // @ts-expect-error The state does not exist.
    never(client => client.jobs.list({ status: 'done' }))
    // @ts-expect-error The scope does not exist.
    never(client => client.keys.create({ name: 'CI', scopes: ['all'] }))
    // @ts-expect-error The event does not exist.
    never(client => client.webhooks.update('wh_1', { events: ['batch.done'] }))
    // @ts-expect-error The listing sets the cursor.
    never(client => client.history({ cursor: 'a' }))
  })

  test('suggest the error codes, and allow others', () => {
    expectTypeOf<'rate_limit'>().toExtend<EvApiError['code']>()
    expectTypeOf<string>().toExtend<EvApiError['code']>()
  })
})

describe('events', () => {
  test('are those that the service sends, and the test event', () => {
    expectTypeOf<WebhookEvent['event']>().toEqualTypeOf<EventKind | 'webhook.test'>()
  })

  test('have the data of the service', () => {
    expectTypeOf<EmittedData>().toExtend<EventData>()
    expectTypeOf<EventData>().toExtend<EmittedData>()
  })

  test('determine their data by their type', () => {
    const describeEvent = (event: WebhookEvent): string => {
      switch (event.event) {
        case 'batch.completed':
          return event.data.download_url
        case 'verification.completed':
          return event.data.reason
        case 'quota.exceeded':
          return event.data.plan
        default:
          return event.event_id
      }
    }
    expectTypeOf(describeEvent).returns.toBeString()
  })
})
