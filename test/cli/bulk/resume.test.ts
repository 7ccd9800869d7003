import { existsSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { startSimulator } from '../../../src/simulator/simulator.ts'
import { emptyFolder, type Ran, runEv, simulatorFlags, startEv } from '../../support/cli.ts'
import { rowsIn } from '../../support/csv.ts'
import { waitUntil } from '../../support/wait.ts'

const LIST = 'old,new\nx,valid1@x.example\nx,invalid2@x.example\nx,risky3@x.example\n'

const ev = (home: string, ...args: string[]): Promise<Ran> =>
  runEv([...args, '--data-dir', 'data'], { home, offline: true })

const bulk = (home: string, ...flags: string[]) =>
  ev(home, 'bulk', 'list.csv', '-o', 'out.txt', '--sandbox', '--quiet', ...flags)

/** The only job of a folder. */
async function jobIn(home: string) {
  const [job] = JSON.parse((await ev(home, 'jobs', '--json')).stdout)
  return job as { readonly job_id: string; readonly written_at: string | null }
}

/** Creates a job without its output: the file is a link to /dev/full until it is removed. */
async function stopped(...flags: string[]) {
  const home = emptyFolder()
  writeFileSync(join(home, 'list.csv'), LIST)
  const full = join(home, flags.includes('--split') ? 'out.risky.txt' : 'out.txt')
  symlinkSync('/dev/full', full)
  const { code, stderr } = await bulk(home, ...flags)
  expect([code, stderr]).toEqual([73, expect.stringMatching(/no space left on device/)])
  rmSync(full)
  const { job_id: id } = await jobIn(home)
  return { home, id, resume: () => ev(home, 'jobs', 'resume', id, '--quiet') }
}

describe.runIf(existsSync('/dev/full'))('a stopped job', () => {
  test('is finished by its ID with the options of its command', async () => {
    const { home, id, resume } = await stopped(
      ...['--column', 'new', '--split', '--only', 'risky,deliverable', '--format', 'ndjson'],
      ...['--metadata', 'customer=42'],
    )
    expect(await resume()).toMatchObject({ code: 0 })
    expect(readdirSync(home).sort()).toEqual([
      ...['data', 'list.csv', 'out.deliverable.txt', 'out.risky.txt'],
    ])
    const risky = JSON.parse(readFileSync(join(home, 'out.risky.txt'), 'utf8'))
    expect(risky).toMatchObject({ row: 3, input: { new: 'risky3@x.example' } })
    expect(await jobIn(home)).toMatchObject({
      job_id: id,
      written_at: expect.any(String),
      metadata: { customer: '42' },
    })
  })

  test('keeps --raw, --deduplicate, --action and --no-header', async () => {
    const { home, resume } = await stopped(
      ...['--raw', '--deduplicate', 'address', '--action', 'send', '--no-header'],
    )
    expect(await resume()).toMatchObject({ code: 0 })
    const resumed = readFileSync(join(home, 'out.txt'), 'utf8')
    const other = emptyFolder()
    writeFileSync(join(other, 'list.csv'), LIST)
    await bulk(other, '--raw', '--deduplicate', 'address', '--action', 'send', '--no-header')
    const times = /\d{4}-\d\d-\d\dT[\d:.]+Z/g
    expect(resumed.replace(times, '')).toBe(
      readFileSync(join(other, 'out.txt'), 'utf8').replace(times, ''),
    )
  })

  test('uses and stores the options of the latest command', async () => {
    const { home, id } = await stopped()
    symlinkSync('/dev/full', join(home, 'out.txt'))
    expect(await bulk(home, '--only', 'risky', '--format', 'json')).toMatchObject({ code: 73 })
    rmSync(join(home, 'out.txt'))
    expect(await ev(home, 'jobs', 'resume', id)).toMatchObject({ code: 0 })
    expect(JSON.parse(readFileSync(join(home, 'out.txt'), 'utf8'))).toHaveLength(1)
    expect((await jobIn(home)).job_id).toBe(id)
  })

  test('is not finished with a changed or missing list', async () => {
    const { home, resume } = await stopped()
    const list = join(home, 'list.csv')
    writeFileSync(list, LIST.replace('valid1', 'valid9'))
    expect(await resume()).toMatchObject({
      code: 65,
      stderr: expect.stringMatching(
        /has changed since job_.* started, or .* differs\. Restore the original file/,
      ),
    })
    rmSync(list)
    expect(await resume()).toMatchObject({ code: 66 })
    expect(existsSync(join(home, 'out.txt'))).toBe(false)
    writeFileSync(list, LIST)
    expect(await resume()).toMatchObject({ code: 0 })
    expect(rowsIn(join(home, 'out.txt'))).toHaveLength(3)
  })

  test('is not resumed once it is written or deleted', async () => {
    const { home, id, resume } = await stopped()
    expect(await resume()).toMatchObject({ code: 0 })
    expect(await resume()).toMatchObject({
      code: 64,
      stderr: expect.stringContaining('is finished, and its output is written'),
    })
    await ev(home, 'jobs', 'delete', id, '--yes')
    expect(await resume()).toMatchObject({ code: 66 })
  })
})

test('a cancelled job is started over by its command only', async () => {
  const simulator = await startSimulator({
    domains: { 'mute.test': { mx: [[10, 'mx.mute.test']] } },
    hosts: { 'mx.mute.test': { behavior: 'silent' } },
  })
  const home = emptyFolder()
  writeFileSync(join(home, 'list.csv'), 'ann@mute.test\n')
  const args = ['bulk', 'list.csv', '-o', 'out.csv', '--data-dir', 'data']
  const running = startEv([...args, ...simulatorFlags(simulator)], { home })
  await waitUntil(() => (simulator.counters().hosts['mx.mute.test']?.connections ?? 0) > 0)
  const { job_id: id } = await jobIn(home)
  expect(await ev(home, 'jobs', 'cancel', id)).toMatchObject({ code: 0 })
  expect((await running.ended).stderr).toContain('cancelled')
  expect(await ev(home, 'jobs', 'resume', id)).toMatchObject({
    code: 64,
    stderr: expect.stringContaining('is cancelled'),
  })
  await simulator.close()
  expect(await ev(home, ...args.slice(0, -2), '--sandbox')).toMatchObject({ code: 0 })
})
