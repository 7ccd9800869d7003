import { existsSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openDatabase } from '../../../src/db/database.ts'
import { systemClock } from '../../../src/platform/clock.ts'
import { emptyFolder, runEv } from '../../support/cli.ts'
import { rowsIn } from '../../support/csv.ts'

const LIST = 'old,new\nx,valid1@x.example\n,\nx,invalid2@x.example\nx,risky3@x.example\n'

test.runIf(existsSync('/dev/full'))(
  'a job of a version that skipped blank rows has its results beside the right rows',
  async () => {
    const home = emptyFolder()
    writeFileSync(join(home, 'list.csv'), LIST)
    symlinkSync('/dev/full', join(home, 'out.csv'))
    const args = ['bulk', 'list.csv', '-o', 'out.csv', '--column', 'new', '--sandbox']
    const bulk = () => runEv([...args, '--data-dir', 'data'], { home, offline: true })
    expect(await bulk()).toMatchObject({ code: 73 })
    rmSync(join(home, 'out.csv'))
    const database = await openDatabase(`sqlite:${join(home, 'data/ev.sqlite')}`, systemClock)
    const { db } = database
    const job = await db.selectFrom('job').select('source').executeTakeFirstOrThrow()
    const { countsBlankRows, ...source } = JSON.parse(job.source)
    expect(countsBlankRows).toBe(true)
    const counts = { total: 3, done: 3, no_address: 0 }
    await db
      .updateTable('job')
      .set({ source: JSON.stringify(source), ...counts })
      .execute()
    await db.deleteFrom('item').where('position', '=', 2).execute()
    for (const position of [3, 4]) {
      const moved = { position: position - 1 }
      await db.updateTable('item').set(moved).where('position', '=', position).execute()
    }
    await database.close()
    expect(await bulk()).toMatchObject({ code: 0 })
    const rows = rowsIn(join(home, 'out.csv')).filter(row => row.new !== '')
    expect(rows.map(row => [row.new, row.ev_class])).toEqual([
      ['valid1@x.example', 'deliverable'],
      ['invalid2@x.example', 'undeliverable'],
      ['risky3@x.example', 'risky'],
    ])
  },
)
