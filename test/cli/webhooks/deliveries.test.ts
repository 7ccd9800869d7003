import { describe, expect, test } from 'vitest'
import { write } from '../../../src/db/database.ts'
import { acquireLock, SERVE_LOCK } from '../../../src/db/file-lock.ts'
import { DAY, HOUR, systemClock } from '../../../src/platform/clock.ts'
import { recordAttempts } from '../../../src/webhooks/delivery-store.ts'
import { updateWebhook } from '../../../src/webhooks/endpoint-store.ts'
import { ev, homeWith, inDatabase, read } from '../../support/cli-webhooks.ts'
import {
  addDelivery,
  addWebhook,
  attemptAt,
  deliveryRow,
  FAILURE,
  SUCCESS,
} from '../../support/webhook-rows.ts'

const ENDED = { expires_at: systemClock.now() + 7 * DAY }
const AGO = (ms: number) => systemClock.now() - ms

/** Creates a webhook with three deliveries: delivered, failed yesterday and failed just now. */
async function homeWithLog(): Promise<string> {
  const home = await homeWith('acc_a')
  await inDatabase(home, async database => {
    await addWebhook(database)
    await addDelivery(database, 'dlv_good', { at: AGO(3 * DAY) })
    await addDelivery(database, 'dlv_old', { at: AGO(DAY), kind: 'quota.warning' })
    await addDelivery(database, 'dlv_bad', { at: AGO(HOUR / 2) })
    const excerpt = 'no\u001b[31m\u202e way'
    const good = attemptAt('dlv_good', {
      ...SUCCESS,
      next: { ...SUCCESS.next, expiresAt: ENDED.expires_at },
    })
    const failed = { ...FAILURE, next: { ...FAILURE.next, expiresAt: ENDED.expires_at } }
    const rest = ['dlv_old', 'dlv_bad'].map(id => attemptAt(id, { ...failed, excerpt }))
    const now = systemClock.now()
    await write(database, trx => recordAttempts(trx, [good, ...rest], { now, steadyNow: now }))
  })
  return home
}

const rowIn = (home: string, id: string) => inDatabase(home, database => deliveryRow(database, id))

describe.concurrent('ev webhooks deliveries', { timeout: 60_000 }, () => {
  test('lists deliveries with filters, newest first', async () => {
    const home = await homeWithLog()
    const ids = async (...args: string[]) =>
      (await read(home, 'webhooks', 'deliveries', 'wh_a', ...args)).map(
        ({ id }: { id: string }) => id,
      )
    expect(await ids()).toEqual(['dlv_bad', 'dlv_old', 'dlv_good'])
    expect(await ids('--limit', '2')).toEqual(['dlv_bad', 'dlv_old'])
    expect(await ids('--status', 'failed', '--event', 'quota.warning')).toEqual(['dlv_old'])
    expect(await ids('--search', 'EVT_OLD')).toEqual(['dlv_old'])
    expect(await ids('--search', '500', '--limit', '1')).toEqual(['dlv_bad'])
    const { stdout } = await ev(home, 'webhooks', 'deliveries', 'wh_a')
    expect(stdout).toMatch(/^dlv_good .* batch\.completed +delivered +1 +– +200 +84 ms$/m)
    expect(stdout).toMatch(/^dlv_bad .* failed +1 +– +500 +84 ms +It answered 500\.$/m)
    const none = await ev(home, 'webhooks', 'deliveries', 'wh_a', '--status', 'pending')
    expect(none.stdout).toBe(
      'No matching deliveries to wh_a. Completed deliveries are kept for seven days.\n',
    )
  })

  test('prints how to show more, and how to show one in full', async () => {
    const home = await homeWithLog()
    const notes = async (...args: string[]) =>
      (await ev(home, 'webhooks', 'deliveries', 'wh_a', ...args)).stdout.split('\n\n')[1]
    const whole = 'To show one with its attempts, run "ev webhooks deliveries dlv_bad".\n'
    expect(await notes()).toBe(whole)
    expect(await notes('--limit', '3')).toBe(whole)
    expect(await notes('--limit', '2')).toBe(
      `Older deliveries are not shown. To show more, set --limit.\n${whole}`,
    )
  })

  test('prints why deliveries wait: no service is running, or the webhook is disabled', async () => {
    const home = await homeWithLog()
    const log = async () => (await ev(home, 'webhooks', 'deliveries', 'wh_a')).stdout
    await ev(home, 'webhooks', 'retry', 'dlv_bad')
    expect(await log()).toContain(
      `No "ev serve" is running on ${home}/data. Pending deliveries are sent`,
    )
    const lock = acquireLock(`${home}/data`, SERVE_LOCK)
    expect(await log()).not.toContain('No "ev serve"')
    lock?.release()
    await ev(home, 'webhooks', 'disable', 'wh_a')
    const off = await log()
    expect(off).toContain(
      'The webhook is disabled: nothing is sent to it, and new events are not stored for it. To enable it, run "ev webhooks enable wh_a".',
    )
    expect(off).not.toContain('No "ev serve"')
  })

  test('prints the subscribed events and the test command if there are no deliveries', async () => {
    const home = await homeWith('acc_a')
    await inDatabase(home, database => addWebhook(database, { events: ['batch.failed'] }))
    const { stdout } = await ev(home, 'webhooks', 'deliveries', 'wh_a')
    expect(stdout).toBe(
      'No deliveries to wh_a. Completed deliveries are kept for seven days.\nIt receives batch.failed. To send a test event, run "ev webhooks test wh_a".\n',
    )
  })

  test.each([
    [['--limit', '0'], '--limit is "0"; it takes a whole number from 1 to 1000.'],
    [['--event', 'batch.done'], 'Unknown event "batch.done". Events: batch.completed'],
    [['--status', 'gone'], 'takes one of pending, delivered, retry_scheduled, failed'],
  ])('rejects %j', async (args, message) => {
    const { code, stderr } = await ev(
      await homeWith('acc_a'),
      'webhooks',
      'deliveries',
      'wh_a',
      ...args,
    )
    expect([code, stderr]).toEqual([64, expect.stringContaining(message)])
  })

  test('shows one with its request and response, with or without the ID of its webhook', async () => {
    const home = await homeWithLog()
    const { stdout } = await ev(home, 'webhooks', 'deliveries', 'dlv_bad')
    expect(stdout).toContain('Request: POST https://app.example/hook\n')
    expect(stdout).toContain('\n  body of evt_bad\n')
    expect(stdout).toMatch(/^Last response: 500\n {2}server: +x\n/m)
    expect(stdout).toContain('no\uFFFD[31m\uFFFD way')
    expect(stdout).toMatch(/^ +1 +scheduled .* 500 +84 ms +It answered 500\.$/m)
    expect(stdout).toMatch(/\n\nTo send it again, run "ev webhooks retry dlv_bad"\.\n$/)
    expect((await ev(home, 'webhooks', 'deliveries', 'wh_a', 'dlv_bad')).stdout).toBe(stdout)
    expect((await ev(home, 'webhooks', 'deliveries', 'dlv_good')).stdout).not.toContain('retry')
    expect(await read(home, 'webhooks', 'deliveries', 'dlv_bad')).toMatchObject({
      id: 'dlv_bad',
      webhook_id: 'wh_a',
      status: 'failed',
      request: { body: 'body of evt_bad' },
      response: { status_code: 500 },
      attempts: [{ number: 1, status_code: 500 }],
    })
  })

  test('does not find a delivery of another or a deleted webhook, or an unknown one', async () => {
    const home = await homeWithLog()
    await inDatabase(home, database => addWebhook(database, { id: 'wh_b' }))
    const other = await ev(home, 'webhooks', 'deliveries', 'wh_b', 'dlv_bad')
    expect([other.code, other.stderr]).toEqual([
      66,
      expect.stringContaining('Delivery dlv_bad of webhook wh_b does not exist.'),
    ])
    await ev(home, 'webhooks', 'delete', 'wh_a', '--yes')
    expect((await ev(home, 'webhooks', 'deliveries', 'dlv_bad')).code).toBe(66)
    expect((await ev(home, 'webhooks', 'retry', 'dlv_bad')).code).toBe(66)
  })
})

describe.concurrent('ev webhooks retry', { timeout: 60_000 }, () => {
  test('retries one delivery by its ID', async () => {
    const home = await homeWithLog()
    const { code, stdout } = await ev(home, 'webhooks', 'retry', 'dlv_bad')
    expect([code, stdout]).toEqual([
      0,
      expect.stringContaining(`No "ev serve" is running on ${home}/data`),
    ])
    const reset = { state: 'pending', trigger: 'manual', attempt: 0, expires_at: null }
    expect(await rowIn(home, 'dlv_bad')).toMatchObject(reset)
    expect(await rowIn(home, 'dlv_old')).toMatchObject({ state: 'failed' })
    const also = await read(home, 'webhooks', 'retry', 'wh_a', 'dlv_good')
    expect(also).toMatchObject({ id: 'dlv_good', status: 'pending', trigger: 'manual' })
  })

  test('prints that a running service sends it', async () => {
    const home = await homeWithLog()
    const lock = acquireLock(`${home}/data`, SERVE_LOCK)
    const { stdout } = await ev(home, 'webhooks', 'retry', 'dlv_bad')
    lock?.release()
    expect(stdout).toBe(
      'dlv_bad (batch.completed) to https://app.example/hook will be sent again, within a second.\n',
    )
  })

  test('retries all that failed since a time', async () => {
    const home = await homeWithLog()
    expect(await read(home, 'webhooks', 'retry', '--since', '2h', 'wh_a')).toEqual({ recovered: 1 })
    expect(await rowIn(home, 'dlv_bad')).toMatchObject({ state: 'pending', trigger: 'manual' })
    expect(await rowIn(home, 'dlv_old')).toMatchObject({ state: 'failed' })
    const { stdout } = await ev(home, 'webhooks', 'recover', 'wh_a', '--since', '2026-01-01')
    expect(stdout).toContain('1 delivery to https://app.example/hook will be sent again')
    expect(await rowIn(home, 'dlv_good')).toMatchObject({ state: 'delivered' })
    const again = await ev(home, 'webhooks', 'recover', 'wh_a', '--since', '2d')
    expect(again.stdout).toBe('No delivery to wh_a has failed since then.\n')
  })

  test('changes nothing if the webhook is disabled', async () => {
    const home = await homeWithLog()
    await inDatabase(home, database =>
      write(database, trx => updateWebhook(trx, 'acc_a', 'wh_a', { active: false, now: 0 })),
    )
    expect((await ev(home, 'webhooks', 'deliveries', 'dlv_bad')).stdout).toContain(
      'Its webhook is disabled. To send it again, run "ev webhooks enable wh_a", then "ev webhooks retry dlv_bad".',
    )
    for (const args of [['dlv_bad'], ['--since', '2d', 'wh_a']]) {
      const { code, stderr } = await ev(home, 'webhooks', 'retry', ...args)
      expect([code, stderr]).toEqual([64, expect.stringContaining('ev webhooks enable wh_a')])
    }
    expect(await rowIn(home, 'dlv_bad')).toMatchObject({ state: 'failed' })
  })

  test.each([
    ['only a webhook', ['wh_a'], 'Give the ID of a delivery (dlv_…)'],
    ['a delivery and a time', ['dlv_bad', '--since', '2d'], 'Give only the webhook'],
    [
      'a future time',
      ['wh_a', '--since', '2100-01-01'],
      '--since is "2100-01-01"; it takes a past time',
    ],
    ['a text that is not a time', ['wh_a', '--since', 'soon'], '--since is "soon"'],
  ])('rejects %s', async (_, args, message) => {
    const { code, stderr } = await ev(await homeWith('acc_a'), 'webhooks', 'retry', ...args)
    expect([code, stderr]).toEqual([64, expect.stringContaining(message)])
  })
})
