import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'

declare module 'vitest' {
  interface ProvidedContext {
    /** Why dist/ could not be built; empty when it is as new as src/. */
    buildFault: string
  }
}

const root = join(import.meta.dirname, '../..')
/** What a build that succeeds writes last. */
const LAST = join(root, 'dist/engine/address/lists/free.txt')

/** Tests of the command line run dist/, as people do: it is built when it is older than src/. */
export default function setup(project: TestProject): void {
  project.provide('buildFault', process.env.EV_SOURCES !== '1' && isStale() ? build() : '')
}

function isStale(): boolean {
  if (!existsSync(LAST)) return true
  const builtAt = statSync(LAST).mtimeMs
  const sources = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
  return sources.some(name => statSync(join(root, 'src', name)).mtimeMs > builtAt)
}

/** A source that does not compile is a fault of the tests that run it, not of all tests. */
function build(): string {
  const { status, stdout, stderr } = spawnSync(process.execPath, ['tools/build.mjs'], {
    cwd: root,
    encoding: 'utf8',
  })
  return status === 0 ? '' : `dist/ cannot be built:\n${stdout}${stderr}`
}
