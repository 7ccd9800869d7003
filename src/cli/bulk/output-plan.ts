import { extname } from 'node:path'
import type { Class } from '../../engine/verdict/verdict.ts'
import { EvError } from '../../platform/error.ts'
import { sanitizeText } from '../../platform/text.ts'

/** One file of an output, and the classes of the rows that go there; `-` is stdout. */
export type OutputFile = { readonly path: string; readonly classes: readonly Class[] }

export type OutputFlags = {
  readonly output: string
  readonly only?: string
  readonly split?: boolean
}

/** Says which rows go where: a class goes to one file at most. */
export function planOutput({ output, only, split = false }: OutputFlags): OutputFile[] {
  // Such as "$OUT" in a script that never set it.
  if (output === '') throw new EvError('usage', 'The output has no name. Name a file with -o.')
  const classes = only === undefined ? CLASSES : readClasses(only)
  if (!split) return [{ path: output, classes }]
  if (output === '-') {
    throw new EvError(
      'usage',
      '--split writes a file for each class, which stdout cannot hold. Name a file with -o.',
    )
  }
  return classes.map(klass => ({ path: besides(output, klass), classes: [klass] }))
}

const CLASSES = ['deliverable', 'risky', 'undeliverable', 'unknown'] as const satisfies Class[]

function readClasses(given: string): Class[] {
  const names = given.split(',').map(name => name.trim())
  const stranger = names.find(name => !CLASSES.some(klass => klass === name))
  if (stranger !== undefined) {
    throw new EvError(
      'usage',
      `--only takes ${CLASSES.join(', ')}, or several of them with commas between; “${sanitizeText(stranger, 40)}” is none of these.`,
    )
  }
  return CLASSES.filter(klass => names.includes(klass))
}

/** `out.csv` becomes `out.risky.csv`. */
function besides(output: string, klass: Class): string {
  const extension = extname(output)
  return `${output.slice(0, output.length - extension.length)}.${klass}${extension}`
}
