<?php

declare(strict_types=1);

// Speaks the line protocol of the conformance suite: see ../README.md.

require_once __DIR__ . '/Idem.php';
require_once __DIR__ . '/Leased.php';
require_once __DIR__ . '/refund.php';

final class WorkFailed extends Exception {}

const BYTEA = ['body', 'fingerprint'];

$sessions = [];

function perform(array $asked, array &$sessions): array|object
{
    $name = $asked['session'] ?? '';
    $session = $sessions[$name] ?? null;
    switch ($asked['do']) {
        case 'open':
            $sessions[$name] = connection($asked['user']);
            break;
        case 'close':
            unset($sessions[$name]);
            break;
        case 'token':
            return ['token' => Idem::newToken()];
        case 'begin':
            execute($session, isset($asked['isolation']) ? "begin isolation level $asked[isolation]" : 'begin');
            break;
        case 'commit':
        case 'rollback':
            execute($session, $asked['do']);
            break;
        case 'execute':
            execute($session, $asked['sql']);
            break;
        case 'call':
            $rows = Idem::call($session, $asked['function'], array_map(decoded(...), $asked['arguments']));
            return ['rows' => array_map(row(...), $rows)];
        case 'atomic':
            return atomic($session, array_map(decoded(...), $asked['request']), $asked['work']);
        case 'leased':
            return leased($session, array_map(decoded(...), $asked['request']), $asked['effect'], $asked['work']);
        case 'refund':
            return answered(refund($session, $asked['scope'], $asked['key_header'], decoded($asked['body'])));
        default:
            throw new LogicException("cannot do $asked[do]");
    }
    return new stdClass();
}

function connection(string $user): PDO
{
    return new PDO('pgsql:', $user, getenv('PGPASSWORD'), [PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION]);
}

function execute(PDO $session, string $sql): void
{
    try {
        $session->exec($sql);
    } catch (PDOException $error) {
        throw IdemException::of($error);
    }
}

function atomic(PDO $session, array $request, array $work): array
{
    try {
        return answered(Idem::atomic($session, $request, fn (PDO $pdo) => work($pdo, $work)));
    } catch (WorkFailed) {
        return ['failed' => true];
    }
}

function leased(PDO $session, array $request, array $effect, array $work): array
{
    $outside = function (?string $key) use ($session, $effect): void {
        $session->exec(str_replace('{key}', $key, $effect['sql']));
        if ($effect['fail'] ?? false) {
            throw new WorkFailed();
        }
    };
    try {
        return answered(Leased::run($session, $request, $outside, fn (PDO $pdo) => work($pdo, $work)));
    } catch (WorkFailed) {
        return ['failed' => true];
    }
}

function work(PDO $pdo, array $work): Answer
{
    $pdo->exec($work['sql']);
    if ($work['fail'] ?? false) {
        throw new WorkFailed();
    }
    return new Answer($work['status'], $work['headers'], decoded($work['body']));
}

function answered(Answer $answer): array
{
    return ['status' => $answer->status, 'headers' => $answer->headers, 'body' => encoded($answer->body)];
}

function row(array $row): array
{
    foreach (array_intersect(BYTEA, array_keys($row)) as $name) {
        $row[$name] = encoded($row[$name]);
    }
    return $row;
}

function encoded(?string $bytes): ?array
{
    return $bytes === null ? null : ['bytes' => bin2hex($bytes)];
}

function decoded(mixed $value): mixed
{
    return is_array($value) && isset($value['bytes']) ? hex2bin($value['bytes']) : $value;
}

function described(IdemException|PDOException $error): array
{
    if ($error instanceof PDOException) {
        return ['sqlstate' => $error->errorInfo[0], 'code' => null, 'kind' => null];
    }
    $kind = strtolower(preg_replace('/(?<!^)[A-Z]/', '_$0', $error::class));
    return ['sqlstate' => $error->sqlstate, 'code' => $error->reason, 'kind' => $kind];
}

while (($line = fgets(STDIN)) !== false) {
    try {
        $answer = perform(json_decode($line, true, flags: JSON_THROW_ON_ERROR), $sessions);
    } catch (IdemException | PDOException $error) {
        $answer = ['error' => described($error)];
    }
    fwrite(STDOUT, json_encode($answer, JSON_THROW_ON_ERROR) . "\n");
}
