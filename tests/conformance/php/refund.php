<?php

declare(strict_types=1);

require_once __DIR__ . '/Idem.php';

const INSERT = 'insert into refunds ("order", amount) values (?, ?) returning id';

/** Answers POST /refunds. The scope is the client that asks, as the server knows it. */
function refund(PDO $pdo, string $scope, ?string $key_header, string $body): Answer
{
    $request = compact('scope', 'key_header', 'body')
        + ['method' => 'POST', 'path' => '/refunds', 'content_type' => 'application/json'];
    // ten lines:
    return Idem::atomic($pdo, $request, function (PDO $pdo) use ($body): Answer {
        ['order' => $order, 'amount' => $amount] = json_decode($body, true, flags: JSON_THROW_ON_ERROR);
        if ($amount <= 0) {
            return new Answer(422, body: '{"error": "amount"}');
        }
        ($insert = $pdo->prepare(INSERT))->execute([$order, $amount]);
        $id = $insert->fetchColumn();
        $headers = [['Location', "/refunds/$id"], ['Content-Type', 'application/json']];
        return new Answer(201, $headers, json_encode(['id' => $id, 'order' => $order, 'amount' => (int) $amount]));
    });
    // end of ten lines
}
