import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { openDatabase } from '../../src/db/database.ts'
import { dataDirectoryFinding } from '../../src/doctor/data-directory.ts'
import { diskFinding, openFilesFinding, thisMachine } from '../../src/doctor/machine.ts'
import { fakeClock } from '../support/clock.ts'

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'ev-doctor-'))
  onTestFinished(() => rmSync(path, { recursive: true, force: true }))
  return path
}

describe('this machine', () => {
  test('tells its free disk and its limit of open files', async () => {
    expect(await thisMachine.freeBytes(tmpdir())).toBeGreaterThan(0)
    expect(thisMachine.openFilesMax ?? 64).toBeGreaterThanOrEqual(64)
  })
})

describe('the disk', () => {
  const find = (freeBytes: number, path = folder()) => {
    const asked: string[] = []
    const freeOf = async (where: string) => {
      asked.push(where)
      return freeBytes
    }
    return diskFinding({ freeBytes: freeOf, openFilesMax: null }, path).then(finding => ({
      ...finding,
      asked,
    }))
  }

  test.each([
    [99e6, 'fail', '99 MB'],
    [100e6, 'warn', '100 MB'],
    [999e6, 'warn', '999 MB'],
    [1e9, 'ok', '1 GB'],
  ])('with %i bytes free: %s', async (freeBytes, state, text) => {
    const finding = await find(freeBytes)
    expect(finding).toMatchObject({
      state,
      says: expect.stringMatching(`^${text} free on the disk`),
    })
    expect(finding.todo === null).toBe(state === 'ok')
  })

  test('is that of the nearest folder that is there', async () => {
    const path = folder()
    expect((await find(1e9, join(path, 'a/b/c'))).asked).toEqual([path])
  })

  test('that cannot be looked at is a warning', async () => {
    const freeBytes = async () => {
      throw new Error('EIO')
    }
    expect(await diskFinding({ freeBytes, openFilesMax: null }, folder())).toMatchObject({
      state: 'warn',
    })
  })
})

describe('the limit of open files', () => {
  test.each([
    [null, 'ok'],
    [456, 'ok'],
    [455, 'warn'],
  ])('%s for 200 connections: %s', (filesMax, state) => {
    const finding = openFilesFinding(filesMax, 200)
    expect(finding.state).toBe(state)
    expect(finding.todo === null).toBe(state === 'ok')
  })
})

describe('the data directory', () => {
  const find = (path: string) => dataDirectoryFinding(path, `sqlite:${join(path, 'ev.sqlite')}`)

  test('that can be made is well, and is not made', async () => {
    const path = join(folder(), 'a/b')
    expect(await find(path)).toMatchObject({
      state: 'ok',
      says: expect.stringMatching('usable and empty'),
    })
    expect(() => statSync(join(path, '..'))).toThrow(/ENOENT/)
  })

  test('that is ours alone is well, with a database and without', async () => {
    const path = folder()
    expect(await find(path)).toMatchObject({ state: 'ok' })
    const database = await openDatabase(`sqlite:${join(path, 'ev.sqlite')}`, fakeClock())
    expect(await find(path)).toMatchObject({ state: 'ok', says: `${path} is usable` })
    await database.close()
  })

  test.skipIf(process.platform === 'win32')('that others may read is a warning', async () => {
    const path = folder()
    chmodSync(path, 0o750)
    expect(await find(path)).toMatchObject({ state: 'warn', todo: `Run: chmod 700 ${path}` })
  })

  test('in whose place or on whose way stands a file cannot be used', async () => {
    const file = join(folder(), 'file')
    writeFileSync(file, '')
    expect(await find(file)).toMatchObject({
      state: 'fail',
      says: expect.stringMatching('is a file'),
    })
    expect(await find(join(file, 'below'))).toMatchObject({
      state: 'fail',
      todo: expect.stringContaining('--data-dir'),
    })
  })

  test.skipIf(process.getuid?.() === 0)('that we may not write cannot be used', async () => {
    const path = join(folder(), 'locked')
    mkdirSync(path, { mode: 0o500 })
    expect(await find(path)).toMatchObject({ state: 'fail' })
  })

  test('with a database that is damaged cannot be used', async () => {
    const path = folder()
    writeFileSync(join(path, 'ev.sqlite'), 'this is no database, and it is long enough to tell')
    expect(await find(path)).toMatchObject({
      state: 'fail',
      says: expect.stringMatching(/cannot use the database .*ev\.sqlite: file is not a database/),
    })
  })
})
