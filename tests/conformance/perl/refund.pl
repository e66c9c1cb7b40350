use v5.26;
use warnings;
use experimental 'signatures';

use Idem;
use JSON::PP ();

my $INSERT = 'insert into refunds ("order", amount) values (?, ?) returning id';
my $JSON   = JSON::PP->new->utf8->allow_nonref;

# Answers POST /refunds. The scope is the client that asks, as the server knows it.
sub refund ($dbh, $scope, $key, $body) {
    my %request = (scope => $scope, key_header => $key, body => $body);
    @request{qw(method path content_type)} = qw(POST /refunds application/json);
    # ten lines:
    return Idem::atomic($dbh, \%request, sub ($dbh) {
        my ($order, $amount) = $JSON->decode($body)->@{qw(order amount)};
        return { status => 422, body => '{"error": "amount"}' } if $amount <= 0;
        my ($id) = $dbh->selectrow_array($INSERT, undef, $order, $amount);
        my $headers = [['Location', "/refunds/$id"], ['Content-Type', 'application/json']];
        my $made = sprintf '{"id": %d, "order": %s, "amount": %d}', $id, $JSON->encode($order), $amount;
        return { status => 201, headers => $headers, body => $made };
    });
    # end of ten lines
}

1;
