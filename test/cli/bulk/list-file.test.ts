import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openList } from '../../../src/cli/bulk/list-file.ts'
import { tempFolder } from '../../support/database.ts'

const hasPipes = spawnSync('mkfifo', ['--version']).status === 0

test.runIf(hasPipes)('a named pipe is stored like stdin', async () => {
  const folder = tempFolder()
  const pipe = join(folder, 'pipe')
  spawnSync('mkfifo', [pipe])
  const written = writeFile(pipe, 'email\nann@good.test\n')
  const list = await openList(process, pipe, folder, {})
  await written
  const digest = createHash('sha256').update('email\nann@good.test\n').digest('hex')
  expect(list).toMatchObject({ kept: true, digest, dialect: { columnName: 'email' } })
  expect(readdirSync(join(folder, 'stdin'))).toHaveLength(1)
  let content = ''
  for await (const chunk of list.bytes()) content += Buffer.from(chunk).toString()
  expect(content).toBe('email\nann@good.test\n')
})

test('an empty name is rejected', async () => {
  await expect(openList(process, '', tempFolder(), {})).rejects.toMatchObject({ code: 'usage' })
})

test('a folder is rejected', async () => {
  const folder = tempFolder()
  await expect(openList(process, folder, folder, {})).rejects.toThrow(/is a folder, not a list/)
})
