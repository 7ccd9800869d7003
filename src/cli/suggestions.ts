import type { Command } from 'commander'

/** Options by the names that other programs give them. The first one that a command has applies. */
const SAME_MEANING: Readonly<Record<string, readonly string[]>> = {
  '--bind': ['--listen', '--host'],
  '--cert': ['--tls-cert'],
  '--connections': ['--concurrency'],
  '--data': ['--data-dir'],
  '--db': ['--database'],
  '--dir': ['--data-dir'],
  '--ehlo': ['--helo'],
  '--filter': ['--only'],
  '--force': ['--yes', '--fresh'],
  '--from': ['--mail-from'],
  '--hostname': ['--host', '--helo'],
  '--key': ['--tls-key'],
  '--log-level': ['--log'],
  '--max': ['--limit', '--concurrency'],
  '--nameserver': ['--dns'],
  '--no-confirm': ['--yes'],
  '--offline': ['--no-smtp'],
  '--out': ['--output'],
  '--outfile': ['--output'],
  '--parallel': ['--concurrency'],
  '--port': ['--port', '--listen', '--smtp-port'],
  '--resolver': ['--dns'],
  '--sender': ['--mail-from'],
  '--silent': ['--quiet'],
  '--ssl': ['--tls-cert'],
  '--threads': ['--concurrency'],
  '--timeout': ['--deadline'],
  '--tls': ['--tls-cert'],
  '--url': ['--base-url', '--database'],
  '--workers': ['--concurrency'],
}

/**
 * Returns the options that an unknown flag probably means: by its meaning, else the similar ones in
 * the suggestion of commander, which also finds words that share only letters.
 */
export function suggestOption(flag: string, command: Command, suggestion: string): string | null {
  const own = new Set(command.options.map(({ long }) => long))
  const byMeaning = SAME_MEANING[flag]?.find(name => own.has(name))
  if (byMeaning !== undefined) return byMeaning
  const similar = (suggestion.match(/--[a-z-]+/g) ?? []).filter(name => name[2] === flag[2])
  return similar.length === 0 ? null : similar.join(' or ')
}
