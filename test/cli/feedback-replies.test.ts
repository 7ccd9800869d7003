import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openLearnedReplies } from '../../src/cluster/learned-replies.ts'
import { openDatabase } from '../../src/db/database.ts'
import { systemClock } from '../../src/platform/clock.ts'
import { silentLog } from '../../src/platform/log.ts'
import { emptyFolder, runEv } from '../support/cli.ts'

const ev = (home: string, ...args: string[]) =>
  runEv(['feedback', ...args, '--data-dir', 'data'], { home, offline: true })

test('ev feedback report lists what servers said to random recipients', async () => {
  const home = emptyFolder()
  writeFileSync(join(home, 'first.csv'), 'email,event\nann@example.com,delivered\n')
  await ev(home, 'import', 'first.csv')
  const database = await openDatabase(`sqlite:${join(home, 'data', 'ev.sqlite')}`, systemClock)
  const store = openLearnedReplies({ database, log: silentLog, network: null })
  for (const domain of ['a.example', 'b.example']) {
    store.put({
      domain,
      reply: '550 <> ei asu meilla',
      operator: 'op.example',
      software: null,
      subnet: '192.0.2.0/24',
      isRefuted: false,
      at: systemClock.now(),
    })
  }
  await store.close()
  await database.close()
  const { stdout } = await ev(home, 'report')
  expect(stdout).toMatch(/^Replies to random recipients, learned from sessions$/m)
  expect(stdout).toMatch(/^ *2 +0 +op\.example +550 <> ei asu meilla$/m)
  expect(JSON.parse((await ev(home, 'report', '--json')).stdout)).toMatchObject({
    learned_replies: [
      {
        reply: '550 <> ei asu meilla',
        domains: 2,
        refuted: 0,
        operators: 1,
        operator: 'op.example',
      },
    ],
  })
})
