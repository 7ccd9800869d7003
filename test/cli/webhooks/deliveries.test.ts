import { cpSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { DAY, HOUR, systemClock } from '../../../src/platform/clock.ts'
import { emptyFolder, runEv } from '../../support/cli.ts'
import { request, startService } from '../../support/cli-service.ts'
import { ev, HERE, homeWith, newKey, read } from '../../support/cli-webhooks.ts'
import { shiftedClock } from '../../support/clock.ts'
import { type Receiver, startReceiver } from '../../support/http-receiver.ts'
import { waitUntil } from '../../support/wait.ts'

/** A webhook whose log has three deliveries: delivered, failed yesterday and failed just now. */
type Log = { readonly home: string } & Record<'webhook' | 'good' | 'old' | 'bad', string>

let receiver: Receiver
let log: Log
beforeAll(async () => {
  receiver = await startReceiver({ name: '127.0.0.1' })
  const home = await homeWith('Shop')
  writeFileSync(join(home, 'ca.pem'), receiver.ca)
  const create = ['webhooks', 'create', '--url', receiver.url, '--events', '*', ...HERE]
  const webhook = (await read(home, ...create)).id
  /** Sends an event as `ev webhooks test` did this long ago. */
  const send = async (agoMs: number, event: string) => {
    const clock = shiftedClock(systemClock)
    clock.pass(-agoMs)
    const args = ['webhooks', 'test', webhook, '--event', event, '--data-dir', 'data']
    await runEv([...args, ...HERE, '--webhook-ca-file', 'ca.pem'], { home, context: { clock } })
  }
  receiver.answer(200)
  await send(3 * DAY, 'batch.completed')
  receiver.answer({ status: 500, headers: { server: 'x' }, body: 'no\u001b[31m\u009b way' })
  await send(DAY, 'quota.warning')
  await send(HOUR / 2, 'batch.completed')
  const [bad, old, good] = (await read(home, 'webhooks', 'deliveries', webhook)).map(
    ({ id }: { id: string }) => id,
  )
  log = { home, webhook, good, old, bad }
})
afterAll(() => receiver.close())

/** Copies the log to a new folder. */
function copyOfLog(): Log {
  const home = emptyFolder()
  cpSync(join(log.home, 'data'), join(home, 'data'), { recursive: true })
  return { ...log, home }
}

const CREATE = ['webhooks', 'create', '--url', 'https://127.0.0.1:8443/hook'] as const

const shown = (home: string, id: string) => read(home, 'webhooks', 'deliveries', id)

describe.concurrent('ev webhooks deliveries', { timeout: 60_000 }, () => {
  test('lists deliveries with filters, newest first', async () => {
    const { home, webhook, good, old, bad } = copyOfLog()
    const ids = async (...args: string[]) =>
      (await read(home, 'webhooks', 'deliveries', webhook, ...args)).map(
        ({ id }: { id: string }) => id,
      )
    expect(await ids()).toEqual([bad, old, good])
    expect(await ids('--limit', '2')).toEqual([bad, old])
    expect(await ids('--status', 'failed', '--event', 'quota.warning')).toEqual([old])
    expect(await ids('--search', old.toUpperCase())).toEqual([old])
    expect(await ids('--search', '500', '--limit', '1')).toEqual([bad])
    const { stdout } = await ev(home, 'webhooks', 'deliveries', webhook)
    expect(stdout).toMatch(
      new RegExp(`^${good} .* batch\\.completed +delivered +1 +– +200 +\\d+ ms$`, 'm'),
    )
    expect(stdout).toMatch(
      new RegExp(`^${bad} .* failed +1 +– +500 +\\d+ ms +It answered 500`, 'm'),
    )
    const none = await ev(home, 'webhooks', 'deliveries', webhook, '--status', 'pending')
    expect(none.stdout).toBe(
      `No matching deliveries to ${webhook}. Completed deliveries are kept for seven days.\n`,
    )
  })

  test('prints how to show more, and how to show one in full', async () => {
    const { home, webhook, bad } = copyOfLog()
    const notes = async (...args: string[]) =>
      (await ev(home, 'webhooks', 'deliveries', webhook, ...args)).stdout.split('\n\n')[1]
    const whole = `To show one with its attempts, run "ev webhooks deliveries ${bad}".\n`
    expect(await notes()).toBe(whole)
    expect(await notes('--limit', '3')).toBe(whole)
    expect(await notes('--limit', '2')).toBe(
      `Older deliveries are not shown. To show more, set --limit.\n${whole}`,
    )
  })

  test('prints why deliveries wait: no service is running, or the webhook is disabled', async () => {
    const { home, webhook, bad } = copyOfLog()
    const text = async () => (await ev(home, 'webhooks', 'deliveries', webhook)).stdout
    await ev(home, 'webhooks', 'retry', bad)
    expect(await text()).toContain(
      `No "ev serve" is running on ${home}/data. Pending deliveries are sent`,
    )
    const service = await startService(home)
    expect(await text()).not.toContain('No "ev serve"')
    await service.end('SIGTERM')
    await ev(home, 'webhooks', 'disable', webhook)
    const off = await text()
    expect(off).toContain(
      `The webhook is disabled: nothing is sent to it, and new events are not stored for it. To enable it, run "ev webhooks enable ${webhook}".`,
    )
    expect(off).not.toContain('No "ev serve"')
  })

  test('prints the subscribed events and the test command if there are no deliveries', async () => {
    const home = await homeWith('Shop')
    const { id } = await read(home, ...CREATE, '--events', 'batch.failed', ...HERE)
    const { stdout } = await ev(home, 'webhooks', 'deliveries', id)
    expect(stdout).toBe(
      `No deliveries to ${id}. Completed deliveries are kept for seven days.\nIt receives batch.failed. To send a test event, run "ev webhooks test ${id}".\n`,
    )
  })

  test.each([
    [['--limit', '0'], '--limit is "0"; it takes a whole number from 1 to 1000.'],
    [['--event', 'batch.done'], 'Unknown event "batch.done". Events: batch.completed'],
    [['--status', 'gone'], 'takes one of pending, delivered, retry_scheduled, failed'],
  ])('rejects %j', async (args, message) => {
    const { code, stderr } = await ev(
      await homeWith('Shop'),
      'webhooks',
      'deliveries',
      'wh_a',
      ...args,
    )
    expect([code, stderr]).toEqual([64, expect.stringContaining(message)])
  })

  test('shows one with its request and response, with or without the ID of its webhook', async () => {
    const { home, webhook, good, bad } = copyOfLog()
    const { stdout } = await ev(home, 'webhooks', 'deliveries', bad)
    expect(stdout).toContain(`Request: POST ${receiver.url}\n`)
    expect(stdout).toMatch(/\n {2}\{"event":"batch\.completed",.*\}\n/)
    expect(stdout).toMatch(/^Last response: 500\n {2}server: +x\n/m)
    expect(stdout).toContain('no\uFFFD[31m\uFFFD way')
    expect(stdout).toMatch(/^ +1 +test .* 500 +\d+ ms +It answered 500\..*$/m)
    expect(stdout).toContain(`\n\nTo send it again, run "ev webhooks retry ${bad}".\n`)
    expect((await ev(home, 'webhooks', 'deliveries', webhook, bad)).stdout).toBe(stdout)
    expect((await ev(home, 'webhooks', 'deliveries', good)).stdout).not.toContain('retry')
    expect(await read(home, 'webhooks', 'deliveries', bad)).toMatchObject({
      id: bad,
      webhook_id: webhook,
      status: 'failed',
      request: { body: expect.stringContaining('batch.completed') },
      response: { status_code: 500 },
      attempts: [{ number: 1, status_code: 500 }],
    })
  })

  test('does not find a delivery of another or a deleted webhook, or an unknown one', async () => {
    const { home, webhook, bad } = copyOfLog()
    const other = await read(home, ...CREATE, '--events', '*', ...HERE)
    const { code, stderr } = await ev(home, 'webhooks', 'deliveries', other.id, bad)
    expect([code, stderr]).toEqual([
      66,
      expect.stringContaining(`Delivery ${bad} of webhook ${other.id} does not exist.`),
    ])
    await ev(home, 'webhooks', 'delete', webhook, '--yes')
    expect((await ev(home, 'webhooks', 'deliveries', bad)).code).toBe(66)
    expect((await ev(home, 'webhooks', 'retry', bad)).code).toBe(66)
  })
})

describe.concurrent('ev webhooks retry', { timeout: 60_000 }, () => {
  test('retries one delivery by its ID', async () => {
    const { home, webhook, good, old, bad } = copyOfLog()
    const { code, stdout } = await ev(home, 'webhooks', 'retry', bad)
    expect([code, stdout]).toEqual([
      0,
      expect.stringContaining(`No "ev serve" is running on ${home}/data`),
    ])
    expect(await shown(home, bad)).toMatchObject({ status: 'pending', trigger: 'manual' })
    expect(await shown(home, old)).toMatchObject({ status: 'failed' })
    const also = await read(home, 'webhooks', 'retry', webhook, good)
    expect(also).toMatchObject({ id: good, status: 'pending', trigger: 'manual' })
  })

  test('prints that a running service sends it', async () => {
    const { home, bad } = copyOfLog()
    const service = await startService(home)
    const { stdout } = await ev(home, 'webhooks', 'retry', bad)
    await service.end('SIGTERM')
    expect(stdout).toBe(
      `${bad} (batch.completed) to ${receiver.url} will be sent again, within a second.\n`,
    )
  })

  test('retries all that failed since a time', async () => {
    const { home, webhook } = copyOfLog()
    writeFileSync(join(home, 'ca.pem'), receiver.ca)
    const key = await newKey(home)
    receiver.answer(410)
    const clock = shiftedClock(systemClock)
    /** Fails an event of a service: after a 410 it is not retried. */
    const fail = async (): Promise<string> => {
      const args = [...HERE, '--webhook-ca-file', 'ca.pem']
      const service = await startService(home, args, { context: { clock } })
      const body = { emails: Array.from({ length: 11 }, (_, n) => `valid${n}@a.example`) }
      const headers = { 'X-EV-Sandbox': 'true' }
      await request(service, key, '/v1/verify/bulk', { body, headers })
      await waitUntil(async () => !(await read(home, 'webhooks', 'show', webhook)).active)
      await service.end('SIGTERM')
      await ev(home, 'webhooks', 'enable', webhook)
      const [last] = await read(home, 'webhooks', 'deliveries', webhook)
      return last.id
    }
    const old = await fail()
    clock.pass(DAY)
    const bad = await fail()
    const recover = (since: string, ...args: string[]) =>
      runEv(['webhooks', 'recover', webhook, '--since', since, '--data-dir', 'data', ...args], {
        home,
        context: { clock },
      })
    expect(JSON.parse((await recover('2h', '--json')).stdout)).toEqual({ recovered: 1 })
    expect(await shown(home, bad)).toMatchObject({ status: 'pending', trigger: 'manual' })
    expect(await shown(home, old)).toMatchObject({ status: 'failed' })
    expect((await recover('2026-01-01')).stdout).toContain(
      `1 delivery to ${receiver.url} will be sent again`,
    )
    expect((await recover('2d')).stdout).toBe(`No delivery to ${webhook} has failed since then.\n`)
  })

  test('changes nothing if the webhook is disabled', async () => {
    const { home, webhook, bad } = copyOfLog()
    await ev(home, 'webhooks', 'disable', webhook)
    expect((await ev(home, 'webhooks', 'deliveries', bad)).stdout).toContain(
      `Its webhook is disabled. To send it again, run "ev webhooks enable ${webhook}", then "ev webhooks retry ${bad}".`,
    )
    for (const args of [[bad], ['--since', '2d', webhook]]) {
      const { code, stderr } = await ev(home, 'webhooks', 'retry', ...args)
      expect([code, stderr]).toEqual([64, expect.stringContaining(`ev webhooks enable ${webhook}`)])
    }
    expect(await shown(home, bad)).toMatchObject({ status: 'failed' })
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
    const { code, stderr } = await ev(await homeWith('Shop'), 'webhooks', 'retry', ...args)
    expect([code, stderr]).toEqual([64, expect.stringContaining(message)])
  })
})
