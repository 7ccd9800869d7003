import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { EvClient } from '../../src/client/client.ts'
import { sleep } from '../../src/platform/clock.ts'
import { startMail } from '../lists/list-mail.ts'
import { postgres, sqlite } from '../nth-call/backends.ts'
import { describeState } from '../nth-call/service-state.ts'
import { emptyDatabase, tempFolder } from '../support/database.ts'
import { mail } from '../support/engine.ts'
import { Calls } from '../support/nth-call.ts'
import { toRecipients } from '../support/recipients.ts'
import {
  RELEASED_SECRET,
  readInterruptedContents,
  restoreInterruptedPostgres,
  restoreInterruptedSqlite,
} from '../support/released-database.ts'
import { fakeTransport } from '../support/webhook-transport.ts'
import { createWiredService } from '../support/wired-service.ts'

/** The reason of each row of the list, in order. */
const REASONS = [
  ...['accepted_email', 'rejected_email', 'accepted_email', 'rejected_email', 'invalid_domain'],
  ...['invalid_email', 'accepted_email', 'accepted_email', 'rejected_email', 'accepted_email'],
  ...['accepted_email', 'rejected_email'],
]

/** The addresses whose results version 0.2.0 had stored. */
const DONE = ['ann@a.test', 'gone@a.test', 'ann@absent.test', 'nonsense']

/** Writes the database that the killed service left, and returns its URL. */
const RESTORE = {
  async sqlite(home: string) {
    restoreInterruptedSqlite(join(home, 'ev.sqlite'))
    return `sqlite:${join(home, 'ev.sqlite')}`
  },
  async postgres() {
    const url = await emptyDatabase()
    await restoreInterruptedPostgres(url)
    return url
  },
}

test.each([
  ['sqlite', sqlite],
  ['postgres', postgres],
] as const)(
  'what a service of 0.2.0 had begun on %s when it was killed is finished: a list, a single and a webhook delivery',
  async (dialect, backend) => {
    const contents = readInterruptedContents(dialect)
    const home = tempFolder()
    writeFileSync(join(home, 'secret'), RELEASED_SECRET)
    const databaseUrl = await RESTORE[dialect](home)
    const { clock, run, pollMs } = backend.startClock(contents.dumpedAt)
    const servers = startMail(() => ({ zone: ZONE, servers: () => toRecipients(answer) }), clock)
    const receiver = fakeTransport()
    const none = new Calls(null)
    const service = await run(
      none,
      createWiredService({
        databaseUrl,
        clock,
        resolver: servers.resolver,
        dial: servers.dial,
        transport: receiver,
        timings: backend.timings,
        settings: { dataDir: home, limits: 'off' },
        file: {
          helo: 'probe.test',
          'allow-ranges': ['192.0.2.0/24'],
          'special-domains': true,
          plans: { enterprise: { 'credits-per-day': 1_000 } },
        },
        key: contents.key,
      }),
    )
    service.service.priority.stop()
    const { key, fetch } = service
    const client = new EvClient({ apiKey: key, baseUrl: 'https://ev.test', fetch })
    const rows = (text: string) => backend.read(databaseUrl, text)

    const untilDone = async () => {
      while ((await rows(OPEN_WORK)).length > 0) await sleep(clock, pollMs)
    }
    await run(none, untilDone())
    const reasons: (string | null | undefined)[] = []
    const readReasons = async () => {
      for await (const { reason } of client.jobs.rows(contents.openJob)) reasons.push(reason)
    }
    await run(none, readReasons())
    await run(none, service.close())

    expect(reasons).toEqual(REASONS)
    expect([...servers.asked().keys()].filter(one => DONE.includes(one))).toEqual([])
    const events = await rows('select kind from event order by kind')
    expect(events.map(({ kind }) => kind)).toEqual([
      'batch.completed',
      'batch.completed',
      'verification.completed',
    ])
    expect(await describeState({ rows, receiver, isShared: backend.isShared }, none)).toEqual([])
  },
)

const ZONE = {
  ...mail('a.test', '192.0.2.1'),
  ...mail('grey.test', '192.0.2.2'),
  ...mail('slow.test', '192.0.2.3'),
  ...mail('later.test', '192.0.2.4'),
}

const answer = (recipient: string) =>
  /^(ann|bob)@/.test(recipient) ? '250 2.1.5 Ok' : '550 5.1.1 No such user'

const OPEN_WORK = `
  select 1 from job where finished_at is null
  union all select 1 from delivery where state <> 'delivered'
  union all select 1 from credit where held <> 0`
