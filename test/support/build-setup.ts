import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'

declare module 'vitest' {
  interface ProvidedContext {
    /** Error of the build of dist/; empty if dist/ is up to date. */
    buildFault: string
  }
}

const root = join(import.meta.dirname, '../..')

/** Builds dist/ if it is older than src/: tests of the command line run dist/, as users do. */
export default function setup(project: TestProject): void {
  project.provide('buildFault', process.env.EV_SOURCES === '1' ? '' : build())
}

/**
 * Returns the error of a failed build instead of throwing it, so that only the tests that run dist/
 * fail.
 */
function build(): string {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ['tools/build.mjs', '--if-changed'],
    { cwd: root, encoding: 'utf8' },
  )
  return status === 0 ? '' : `dist/ cannot be built:\n${stdout}${stderr}`
}
