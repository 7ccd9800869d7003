import { describe, expect, test } from 'vitest'
import type { Database } from '../../src/db/database.ts'
import {
  type DeliveryQuery,
  findDelivery,
  getDeliveryPage,
  searchDeliveries,
} from '../../src/webhooks/delivery-store.ts'
import { tempDatabase } from '../support/database.ts'
import { addDelivery, deliveryRow } from '../support/webhook-rows.ts'

type DeliverySearch = Parameters<typeof searchDeliveries>[1]

async function services(): Promise<Database> {
  const database = await tempDatabase()
  await addDelivery(database, 'dlv_b', { at: 20, state: 'failed' })
  await addDelivery(database, 'dlv_d', { at: 30, state: 'delivered', kind: 'quota.warning' })
  await addDelivery(database, 'dlv_a', { at: 20, state: 'failed', kind: 'quota.warning' })
  await addDelivery(database, 'dlv_c', { at: 10 })
  await addDelivery(database, 'dlv_other', { at: 25, webhook_id: 'wh_b', state: 'failed' })
  return database
}

const page = async (database: Database, given: Partial<DeliveryQuery> = {}) =>
  (await getDeliveryPage(database, { webhookId: 'wh_a', before: null, max: 9, ...given })).map(
    ({ id }) => id,
  )

describe('the log of a webhook', () => {
  test('has its own deliveries, newest first, with all fields', async () => {
    const database = await services()
    expect(await page(database)).toEqual(['dlv_d', 'dlv_b', 'dlv_a', 'dlv_c'])
    const [first] = await getDeliveryPage(database, { webhookId: 'wh_a', before: null, max: 1 })
    expect(first).toEqual(await deliveryRow(database, 'dlv_d'))
  })

  test('continues after the last row of a page, also among rows of the same time', async () => {
    const database = await services()
    expect(await page(database, { max: 2 })).toEqual(['dlv_d', 'dlv_b'])
    const before = { createdAt: 20, id: 'dlv_b' }
    expect(await page(database, { before, max: 2 })).toEqual(['dlv_a', 'dlv_c'])
    expect(await page(database, { before: { createdAt: 10, id: 'dlv_c' } })).toEqual([])
  })

  test('can be filtered by state, kind, or both', async () => {
    const database = await services()
    expect(await page(database, { status: 'failed' })).toEqual(['dlv_b', 'dlv_a'])
    expect(await page(database, { status: 'retry_scheduled' })).toEqual([])
    expect(await page(database, { event: 'quota.warning' })).toEqual(['dlv_d', 'dlv_a'])
    const both = { status: 'failed', event: 'quota.warning' } as const
    expect(await page(database, both)).toEqual(['dlv_a'])
    const before = { createdAt: 20, id: 'dlv_b' }
    expect(await page(database, { status: 'failed', before })).toEqual(['dlv_a'])
  })
})

describe('a search in the log', () => {
  const search = async (database: Database, text: string, given: Partial<DeliverySearch> = {}) => {
    const query = { webhookId: 'wh_a', before: null, max: 9, search: text, ...given }
    const { rows, next } = await searchDeliveries(database, query)
    return { ids: rows.map(({ id }) => id), next }
  }

  test.each([
    ['the body', 'BODY of evt_b', ['dlv_b']],
    ['all bodies', 'body of', ['dlv_d', 'dlv_b', 'dlv_a', 'dlv_c']],
    ['the event ID', 'evt_a', ['dlv_a']],
    ['the delivery ID', 'dlv_c', ['dlv_c']],
    ['the status code', '503', ['dlv_e']],
    ['the error', 'no such HOST', ['dlv_f']],
    ['nothing', 'absent', []],
    ['another webhook', 'dlv_other', []],
  ])('finds %s', async (_, text, ids) => {
    const database = await services()
    await addDelivery(database, 'dlv_e', { at: 5, status_code: 503 })
    await addDelivery(database, 'dlv_f', { at: 4, error: 'No such host.' })
    const expected = text === 'body of' ? [...ids, 'dlv_e', 'dlv_f'] : ids
    expect(await search(database, text)).toEqual({ ids: expected, next: null })
  })

  test('respects the filters and continues after a page', async () => {
    const database = await services()
    const failed = { status: 'failed' } as const
    expect((await search(database, 'body', failed)).ids).toEqual(['dlv_b', 'dlv_a'])
    const first = await search(database, 'body', { max: 3 })
    expect(first).toEqual({
      ids: ['dlv_d', 'dlv_b', 'dlv_a'],
      next: { createdAt: 20, id: 'dlv_a' },
    })
    expect(await search(database, 'body', { max: 3, before: first.next })).toEqual({
      ids: ['dlv_c'],
      next: null,
    })
  })

  test('ends after a number of deliveries, and continues there', async () => {
    const database = await services()
    const first = await search(database, 'evt_c', { scannedMax: 2 })
    expect(first).toEqual({ ids: [], next: { createdAt: 20, id: 'dlv_b' } })
    expect((await search(database, 'evt_c', { before: first.next })).ids).toEqual(['dlv_c'])
  })
})

describe('one delivery', () => {
  const addAttempts = ({ db }: Database, id: string, count: number) =>
    db
      .insertInto('attempt')
      .values(
        Array.from({ length: count }, (_, n) => ({
          delivery_id: id,
          number: n + 1,
          trigger: 'scheduled' as const,
          url: 'https://x.example/',
          started_at: n,
          duration_ms: 9,
        })),
      )
      .execute()

  test('has the body of its event and its attempts, oldest first', async () => {
    const database = await services()
    await addAttempts(database, 'dlv_a', 3)
    await addAttempts(database, 'dlv_b', 1)
    const found = await findDelivery(database, 'wh_a', 'dlv_a')
    expect(found?.delivery).toEqual(await deliveryRow(database, 'dlv_a'))
    expect(found?.body).toBe('body of evt_a')
    expect(found?.attempts.map(row => [row.delivery_id, row.number])).toEqual([
      ['dlv_a', 1],
      ['dlv_a', 2],
      ['dlv_a', 3],
    ])
  })

  test('is found only under its own webhook', async () => {
    const database = await services()
    expect(await findDelivery(database, 'wh_b', 'dlv_a')).toBeNull()
    expect(await findDelivery(database, 'wh_a', 'dlv_x')).toBeNull()
  })
})
