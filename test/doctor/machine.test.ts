import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { openDatabase } from '../../src/db/database.ts'
import {
  dataDirectoryFinding,
  diskFinding,
  openFilesFinding,
  readOpenFilesMax,
  thisMachine,
} from '../../src/doctor/machine.ts'
import { fakeClock } from '../support/clock.ts'

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'ev-doctor-'))
  onTestFinished(() => rmSync(path, { recursive: true, force: true }))
  return path
}

describe('this machine', () => {
  test('reports free disk space and the limit of open files', async () => {
    expect(await thisMachine.freeBytes(tmpdir())).toBeGreaterThan(0)
    expect(thisMachine.openFilesMax ?? 64).toBeGreaterThanOrEqual(64)
  })

  test('reads the same limit of open files from Linux and from Node', () => {
    expect(readOpenFilesMax(join(folder(), 'no-limits'))).toBe(readOpenFilesMax())
  })

  test('has no limit of open files if Linux has none', () => {
    const file = join(folder(), 'limits')
    writeFileSync(
      file,
      'Max open files            unlimited            unlimited            files\n',
    )
    expect(readOpenFilesMax(file)).toBeNull()
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

  test('is that of the nearest existing directory', async () => {
    const path = folder()
    expect((await find(1e9, join(path, 'a/b/c'))).asked).toEqual([path])
  })

  test('is a warning if it cannot be read', async () => {
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

  test('passes if it can be created, and is not created', async () => {
    const path = join(folder(), 'a/b')
    expect(await find(path)).toMatchObject({
      state: 'ok',
      says: expect.stringMatching('usable and empty'),
    })
    expect(readdirSync(join(path, '../..'))).toEqual([])
  })

  test('passes if it is private, with and without a database', async () => {
    const path = folder()
    expect(await find(path)).toMatchObject({ state: 'ok' })
    const database = await openDatabase(`sqlite:${join(path, 'ev.sqlite')}`, fakeClock())
    expect(await find(path)).toMatchObject({ state: 'ok', says: `${path} is usable` })
    await database.close()
  })

  test.skipIf(process.platform === 'win32')('is a warning if other users can read it', async () => {
    const path = folder()
    chmodSync(path, 0o750)
    expect(await find(path)).toMatchObject({ state: 'warn', todo: `Run: chmod 700 ${path}` })
  })

  test('fails if a file is in its path', async () => {
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

  // access(2) grants root everything there.
  test.skipIf(process.platform !== 'linux')('fails in a folder that takes no files', async () => {
    expect(await find('/proc/ev')).toMatchObject({ state: 'fail' })
  })

  test.skipIf(process.getuid?.() === 0)('fails if it is not writable', async () => {
    const path = join(folder(), 'locked')
    mkdirSync(path, { mode: 0o500 })
    expect(await find(path)).toMatchObject({ state: 'fail' })
  })

  test('fails with a damaged database', async () => {
    const path = folder()
    writeFileSync(join(path, 'ev.sqlite'), 'this is no database, and it is long enough to tell')
    expect(await find(path)).toMatchObject({
      state: 'fail',
      says: expect.stringMatching(/cannot use the database .*ev\.sqlite: file is not a database/),
    })
  })
})
