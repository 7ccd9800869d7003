/** Formats names and aligned values, one pair per line, without those that are null. */
export function keyValues(all: readonly (readonly [name: string, value: string | null])[]): string {
  const shown = all.filter(([, value]) => value !== null)
  const width = Math.max(...shown.map(([name]) => name.length))
  return shown.map(([name, value]) => `  ${name.padEnd(width)}  ${value}\n`).join('')
}
