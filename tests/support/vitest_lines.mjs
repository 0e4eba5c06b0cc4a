// Runs the dashboard's unit tests and prints a PASS/FAIL/SKIP line for each.
import { spawnSync } from 'node:child_process'
import { readFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const dir = mkdtempSync(join(tmpdir(), 'odt-vitest-'))
const file = join(dir, 'results.json')
const run = spawnSync('npx', ['--no-install', 'vitest', 'run', '--reporter=json', `--outputFile=${file}`], {
  cwd: new URL('../../web', import.meta.url),
  stdio: ['ignore', 'inherit', 'inherit'],
})
try {
  const words = { passed: 'PASS', failed: 'FAIL', skipped: 'SKIP', pending: 'SKIP', todo: 'SKIP' }
  for (const suite of JSON.parse(readFileSync(file, 'utf8')).testResults) {
    const name = suite.name.split('/web/').pop()
    if (suite.assertionResults.length === 0) console.log(`FAIL web/${name} ${suite.message ?? ''}`)
    for (const test of suite.assertionResults) {
      const full = `web/${name}/${test.fullName}`.replace(/\s+/g, '_')
      console.log(words[test.status] ?? 'FAIL', full)
      for (const message of test.failureMessages) console.error(message)
    }
  }
} finally {
  rmSync(dir, { recursive: true })
}
process.exit(run.status ?? 1)
