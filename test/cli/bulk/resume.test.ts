import { existsSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { bulkOnMachine, resumeBulk } from '../../../src/cli/bulk/bulk-on-machine.ts'
import type { BulkSource } from '../../../src/cli/bulk/list-source.ts'
import { openDatabase } from '../../../src/db/database.ts'
import { deleteJob } from '../../../src/jobs/delete-job.ts'
import { cancelJob } from '../../../src/jobs/job-state.ts'
import { type Job, parseMetadata } from '../../../src/jobs/job-store.ts'
import { systemClock } from '../../../src/platform/clock.ts'
import { memoryContext } from '../../support/cli.ts'
import { rowsIn } from '../../support/csv.ts'
import { tempFolder } from '../../support/database.ts'

const LIST = 'old,new\nx,valid1@x.example\nx,invalid2@x.example\nx,risky3@x.example\n'

/** Creates a job without its output: `out.txt` is a link to /dev/full until it is removed. */
async function stopped(flags: Parameters<typeof bulkOnMachine>[2] = {}, content = LIST) {
  const folder = tempFolder()
  const settings = { dataDir: join(folder, 'data'), quiet: true }
  const [list, output] = [join(folder, 'list.csv'), join(folder, 'out.txt')]
  writeFileSync(list, content)
  const full = flags.split ? join(folder, 'out.risky.txt') : output
  symlinkSync('/dev/full', full)
  const run = bulkOnMachine(memoryContext({ home: tempFolder() }).context, list, {
    ...settings,
    output,
    sandbox: true,
    ...flags,
  })
  await expect(run).rejects.toThrow(/no space left on device/)
  rmSync(full)
  return { folder, settings, list, output, job: await onlyJob(settings.dataDir) }
}

const open = (dataDir: string) => openDatabase(`sqlite:${join(dataDir, 'ev.sqlite')}`, systemClock)

async function onlyJob(dataDir: string): Promise<Job> {
  const database = await open(dataDir)
  try {
    return await database.db.selectFrom('job').selectAll().executeTakeFirstOrThrow()
  } finally {
    await database.close()
  }
}

const sourceOf = (job: Job): BulkSource => JSON.parse(job.source)

describe.runIf(existsSync('/dev/full'))('a stopped job', () => {
  test('stores the options that resuming needs', async () => {
    const { job, list, output } = await stopped({
      column: 'new',
      raw: true,
      only: 'risky,unknown',
      split: true,
      format: 'json',
      wait: false,
      metadata: ['customer=42'],
    })
    expect(sourceOf(job)).toEqual({
      path: list,
      kept: false,
      output,
      column: 'new',
      sheet: null,
      encoding: null,
      allAddresses: null,
      header: true,
      raw: true,
      only: 'risky,unknown',
      split: true,
      action: null,
      deduplicate: null,
      format: 'json',
      vocabulary: null,
      keepExternal: false,
      externalDate: null,
      sandbox: true,
      wait: false,
      metadata: { customer: '42' },
      countsBlankRows: true,
    })
  })

  test('is finished by its ID with the options of its command', async () => {
    const { folder, settings, job } = await stopped({
      column: 'new',
      split: true,
      only: 'risky,deliverable',
      format: 'ndjson',
      metadata: ['customer=42'],
    })
    expect(await resumeBulk(memoryContext({ home: tempFolder() }).context, job.id, settings)).toBe(
      0,
    )
    expect(readdirSync(folder).sort()).toEqual([
      ...['data', 'list.csv', 'out.deliverable.txt', 'out.risky.txt'],
    ])
    const risky = JSON.parse(readFileSync(join(folder, 'out.risky.txt'), 'utf8'))
    expect(risky).toMatchObject({ row: 3, input: { new: 'risky3@x.example' } })
    const written = await onlyJob(settings.dataDir)
    const { id, written_at } = written
    expect({ id, isWritten: written_at !== null }).toEqual({ id: job.id, isWritten: true })
    expect(parseMetadata(written)).toEqual({ customer: '42' })
  })

  test('uses and stores the options of the latest command', async () => {
    const { folder, settings, list, output, job } = await stopped()
    const flags = { ...settings, sandbox: true, output, only: 'risky', format: 'json' as const }
    expect(await bulkOnMachine(memoryContext({ home: tempFolder() }).context, list, flags)).toBe(0)
    expect(JSON.parse(readFileSync(join(folder, 'out.txt'), 'utf8'))).toHaveLength(1)
    const now = await onlyJob(settings.dataDir)
    expect(now.id).toBe(job.id)
    expect(sourceOf(now)).toMatchObject({ only: 'risky', format: 'json', split: false })
  })

  test('of a version that skipped blank rows has its results beside the right rows', async () => {
    const { folder, settings, list, output, job } = await stopped(
      {},
      LIST.replace('\nx,inv', '\n,$&'),
    )
    expect(job.total).toBe(4)
    const database = await open(settings.dataDir)
    const { countsBlankRows, ...source } = sourceOf(job)
    expect(countsBlankRows).toBe(true)
    await database.db
      .updateTable('job')
      .set({ source: JSON.stringify(source), total: 3, done: 3, no_address: 0 })
      .execute()
    await database.db.deleteFrom('item').where('position', '=', 2).execute()
    for (const position of [3, 4]) {
      await database.db
        .updateTable('item')
        .set({ position: position - 1 })
        .where('position', '=', position)
        .execute()
    }
    await database.close()
    const flags = { ...settings, sandbox: true, output, column: 'new' }
    expect(await bulkOnMachine(memoryContext({ home: tempFolder() }).context, list, flags)).toBe(0)
    expect((await onlyJob(settings.dataDir)).id).toBe(job.id)
    const rows = rowsIn(join(folder, 'out.txt'))
    expect(rows.map(row => [row.new, row.ev_class])).toEqual([
      ['valid1@x.example', 'deliverable'],
      ['invalid2@x.example', 'undeliverable'],
      ['risky3@x.example', 'risky'],
    ])
  })

  test('is not finished with a changed or missing list', async () => {
    const { settings, list, output, job } = await stopped()
    writeFileSync(list, LIST.replace('valid1', 'valid9'))
    await expect(
      resumeBulk(memoryContext({ home: tempFolder() }).context, job.id, settings),
    ).rejects.toMatchObject({
      code: 'bad_input',
      message: expect.stringMatching(
        /has changed since job_.* started, or .* differs\. Restore the original file/,
      ),
    })
    rmSync(list)
    await expect(
      resumeBulk(memoryContext({ home: tempFolder() }).context, job.id, settings),
    ).rejects.toMatchObject({ code: 'no_input' })
    expect(existsSync(output)).toBe(false)
    writeFileSync(list, LIST)
    expect(await resumeBulk(memoryContext({ home: tempFolder() }).context, job.id, settings)).toBe(
      0,
    )
  })

  test('is not resumed once it is written, cancelled or deleted', async () => {
    const { settings, job } = await stopped()
    expect(await resumeBulk(memoryContext({ home: tempFolder() }).context, job.id, settings)).toBe(
      0,
    )
    await expect(
      resumeBulk(memoryContext({ home: tempFolder() }).context, job.id, settings),
    ).rejects.toMatchObject({
      code: 'usage',
      message: expect.stringContaining('is finished, and its output is written'),
    })
    const database = await open(settings.dataDir)
    await deleteJob(database, job.id)
    await database.close()
    await expect(
      resumeBulk(memoryContext({ home: tempFolder() }).context, job.id, settings),
    ).rejects.toMatchObject({ code: 'no_input' })
    await expect(
      resumeBulk(memoryContext({ home: tempFolder() }).context, 'job_b', {
        dataDir: '/nowhere',
        quiet: true,
      }),
    ).rejects.toMatchObject({
      code: 'no_input',
    })
  })

  test('starts over only with its command after a cancellation', async () => {
    const { settings, list, output, job } = await stopped()
    const database = await open(settings.dataDir)
    // Put the job back to processing, so that it can be cancelled.
    await database.db.updateTable('job').set({ state: 'processing', finished_at: null }).execute()
    expect(await cancelJob(database, job.id)).toBe(true)
    await database.close()
    await expect(
      resumeBulk(memoryContext({ home: tempFolder() }).context, job.id, settings),
    ).rejects.toMatchObject({
      code: 'usage',
      message: expect.stringContaining('is cancelled'),
    })
    expect(
      await bulkOnMachine(memoryContext({ home: tempFolder() }).context, list, {
        ...settings,
        output,
        sandbox: true,
      }),
    ).toBe(0)
  })
})
